// SPDX-License-Identifier: Apache-2.0
// For tests that start the local server. Shared by the test files of this room.
#pragma once

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::local {

// One command, its answer as text.
inline std::string ask(const std::string& socket, std::initializer_list<const char*> words) {
  const std::unique_ptr<redisContext, decltype(&redisFree)> server{redisConnectUnix(socket.c_str()), redisFree};
  std::vector<const char*> argv{words};
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply{
      redisCommandArgv(server.get(), static_cast<int>(argv.size()), argv.data(), nullptr), freeReplyObject};
  const auto* answer = static_cast<const redisReply*>(reply.get());
  if (answer == nullptr || answer->str == nullptr) return {};
  return {answer->str, static_cast<std::size_t>(answer->len)};
}

// Kills the server that a test started, and waits until it is gone.
inline void kill_and_wait(int pid) {
  ASSERT_GT(pid, 0) << "it does not run, and 0 would be all of us";
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  ::kill(pid, SIGKILL);
  pollfd ended{process, POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  ::close(process);
}

}  // namespace holdfast::local
