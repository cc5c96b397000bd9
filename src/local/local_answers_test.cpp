// SPDX-License-Identifier: Apache-2.0
// A local server that runs and answers PING with an error, and what is said of it.
#include "local/clock.hpp"
#include "local/descriptor.hpp"
#include "local/directory.hpp"
#include "local/private_mounts.hpp"
#include "local/probe.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"
#include "local/server_lock.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Answers whatever it is asked on the directory's socket with the same words.
class impostor {
public:
  impostor(const std::string& directory, std::string words)
      : words_{std::move(words)}, listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, find_or_make(directory).socket().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    answering_ = std::thread{[this] { answer_all(); }};
  }
  ~impostor() {
    ::shutdown(listener_, SHUT_RDWR);
    answering_.join();
    ::close(listener_);
  }
  impostor(const impostor&) = delete;
  impostor& operator=(const impostor&) = delete;

private:
  void answer_all() const {
    for (;;) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      std::array<char, 64> question{};
      [[maybe_unused]] const auto heard = ::read(client, question.data(), question.size());
      [[maybe_unused]] const auto sent = ::send(client, words_.data(), words_.size(), MSG_NOSIGNAL);
      ::close(client);
    }
  }

  std::string words_;
  int listener_;
  std::thread answering_;
};

std::string refusal_of(local_status (*work)(std::string_view), const std::string& directory) {
  try {
    work(directory);
    return {};
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::local_server);
    return e.detail().why;
  }
}

using context = std::unique_ptr<redisContext, decltype(&redisFree)>;

context connect_to(const std::string& socket) { return {redisConnectUnix(socket.c_str()), redisFree}; }

std::string ask(const context& server, const char* command) {
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply{redisCommand(server.get(), command), freeReplyObject};
  const auto* answer = static_cast<const redisReply*>(reply.get());
  return answer == nullptr || answer->str == nullptr ? "" : answer->str;
}

template <class Condition>
bool comes_true(Condition condition) {
  const auto give_up_at = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= give_up_at) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

TEST(local_answers, misconf_is_said_by_a_server_that_runs) {
  const scratch_directory scratch;
  const impostor server{scratch.server(), "-MISCONF Errors writing to the AOF file: No space left on device\r\n"};
  EXPECT_TRUE(query_local(scratch.server()).running);
  const auto found = start_local(scratch.server());
  EXPECT_TRUE(found.running);
  EXPECT_FALSE(found.was_started);
  EXPECT_EQ(found.pid, ::getpid());
}

// The same, with a disk that is full.
TEST(local_answers, server_on_a_full_disk_can_be_stopped) {
  const scratch_directory scratch;
  const auto is_stopped = with_private_mounts([&] {
    if (::mount("none", scratch.path().c_str(), "tmpfs", 0, "size=600k,mode=700") != 0) return false;
    const auto server = connect_to(start_local(scratch.server()).socket);
    const int filler = ::open((scratch.path() + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string block(1024, 'x');
    while (::write(filler, block.data(), block.size()) > 0) {
    }
    ::close(filler);
    const auto command = "SET key " + std::string(20'000, 'x');
    const bool is_full =
        comes_true([&] { return ask(server, command.c_str()) != "OK" && ask(server, "PING").starts_with("MISCONF"); });
    return is_full && query_local(scratch.server()).running && !stop_local(scratch.server()).running &&
           server_lock::try_take(scratch.server()).has_value();
  });
  if (!is_stopped) GTEST_SKIP() << "only root can mount";
  EXPECT_TRUE(*is_stopped);
}

TEST(local_answers, that_keep_a_server_from_serving_are_told_apart) {
  struct one {
    const char* answer;
    const char* said;
  };
  std::vector<std::thread> all;  // Each is given its time.
  for (const auto& [answer, said] : {one{"-LOADING Redis is loading the dataset in memory", "still reads its file"},
                                     one{"-BUSY Redis is busy running a script.", "busy with a script"},
                                     one{"-ERR max number of clients reached", "as many clients as it takes"}})
    all.emplace_back([answer = answer, said = said] {
      const scratch_directory scratch;
      const impostor server{scratch.server(), std::string{answer} + "\r\n"};
      const auto refusal = refusal_of(start_local, scratch.server());
      EXPECT_THAT(refusal, HasSubstr(said));
      if (refusal.find("holdfast local stop") != refusal.npos) {
        EXPECT_THAT(refusal, HasSubstr("`holdfast local stop " + scratch.server() + "`")) << "not the user's own";
      }
    });
  for (auto& each : all) each.join();
}

// One that was stopped, or hangs at its disk.
TEST(local_answers, server_that_is_silent_can_be_ended_by_its_number) {
  const scratch_directory scratch;
  const int pid = start_local(scratch.server()).pid;
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGSTOP);
  const auto ended = "`kill -9 " + std::to_string(pid) + "`";
  std::vector<std::thread> all;  // Each is given its time.
  for (auto* work : {start_local, stop_local, query_local})
    all.emplace_back([&, work] { EXPECT_THAT(refusal_of(work, scratch.server()), HasSubstr(ended)); });
  for (auto& each : all) each.join();
  ::kill(pid, SIGCONT);
}

// A link may lead to any program, and whoever reads that pastes it.
TEST(local_answers, who_is_not_of_the_directory_is_not_to_be_killed) {
  const scratch_directory scratch;
  const impostor server{scratch.server(), "HTTP/1.1 400 Bad Request\r\n"};
  const auto refusal = refusal_of(query_local, scratch.server());
  EXPECT_THAT(refusal, testing::Not(HasSubstr("kill")));
  EXPECT_THAT(refusal, HasSubstr("`ps -fp " + std::to_string(::getpid()) + "`"));
}

TEST(local_answers, server_with_as_many_clients_as_it_takes_can_be_stopped) {
  const scratch_directory scratch;
  const auto socket = start_local(scratch.server()).socket;
  const auto last = connect_to(socket);
  ASSERT_EQ(ask(last, "CONFIG SET maxclients 1"), "OK");
  EXPECT_TRUE(query_local(scratch.server()).running);
  EXPECT_FALSE(stop_local(scratch.server()).running);
  EXPECT_TRUE(server_lock::try_take(scratch.server()).has_value());
}

// By a signal, and that goes to nobody but a server of this directory.
TEST(local_answers, who_is_not_of_the_directory_is_not_signalled) {
  const scratch_directory scratch;
  const impostor server{scratch.server(), "-ERR max number of clients reached\r\n"};
  EXPECT_THAT(refusal_of(stop_local, scratch.server()), HasSubstr("as many clients as it takes"));
}

// The queue of a socket that nobody accepts from is full, until the server has time again.
TEST(local_answers, server_hears_that_it_is_to_end_when_its_queue_has_room_again) {
  const scratch_directory scratch;
  const auto path = find_or_make(scratch.server()).socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const descriptor crowd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::connect(crowd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::atomic<bool> is_told{false};
  std::thread server{[&] {
    ::poll(nullptr, 0, 100);
    while (!is_told) {
      const descriptor client{::accept(listener.get(), nullptr, nullptr)};
      pollfd question{client.get(), POLLIN, 0};
      std::array<char, 64> words{};
      if (::poll(&question, 1, 100) == 1 && ::recv(client.get(), words.data(), words.size(), 0) > 0)
        is_told = std::string_view{words.data()}.find("SHUTDOWN") != std::string_view::npos;
    }
  }};
  EXPECT_EQ(shut_down(path, boottime_now() + 20s).what, presence::refusing);
  EXPECT_TRUE(is_told);
  if (!is_told) ::shutdown(listener.get(), SHUT_RDWR);
  is_told = true;
  server.join();
}

TEST(local_answers, server_that_is_busy_with_a_script_can_be_stopped) {
  const scratch_directory scratch;
  const auto socket = start_local(scratch.server()).socket;
  const auto server = connect_to(socket);
  ASSERT_EQ(ask(server, "CONFIG SET lua-time-limit 1"), "OK");
  redisAppendCommand(server.get(), "EVAL %s 0", "while true do end");
  int is_written = 0;
  while (is_written == 0) ASSERT_EQ(redisBufferWrite(server.get(), &is_written), REDIS_OK);
  ASSERT_TRUE(comes_true([&] { return ask(connect_to(socket), "PING").starts_with("BUSY"); }));
  EXPECT_TRUE(query_local(scratch.server()).running);
  EXPECT_FALSE(stop_local(scratch.server()).running);
  EXPECT_TRUE(server_lock::try_take(scratch.server()).has_value());
}

TEST(local_answers, server_that_cannot_be_asked_is_not_called_another) {
  const scratch_directory scratch;
  start_local(scratch.server());
  EXPECT_TRUE(*in_sandbox(
      [] { return refuse(SYS_socket, EMFILE); },
      [&] { return refusal_of(query_local, scratch.server()).find("cannot be asked") != std::string::npos; }));
}

}  // namespace
}  // namespace holdfast::local
