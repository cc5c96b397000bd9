// SPDX-License-Identifier: Apache-2.0
#include "client/owner_label.hpp"

#include "net/quiet_thread.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using namespace std::chrono_literals;

std::string number_of(uid_t user) { return "uid" + std::to_string(user); }

// Users of this machine, as the name service has them first nearly everywhere. Empty: it is none of them.
std::string name_in_file(uid_t user) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file{std::fopen("/etc/passwd", "re"), &std::fclose};
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  while (file && fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    const bool is_user = *found->pw_name != '+' && *found->pw_name != '-';  // And not the whole of NIS.
    if (is_user && found->pw_uid == user) return found->pw_name;
  }
  return {};
}

std::string name_in_service(uid_t user) {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found) return found->pw_name;
  return number_of(user);
}

std::string user_name() {
  const uid_t user = geteuid();
  auto name = name_in_file(user);
  return name.empty() ? asked_within(
                            100ms, [user] { return name_in_service(user); }, number_of(user))
                      : name;
}

}  // namespace

std::string asked_within(duration at_most, std::function<std::string()> ask, const std::string& instead) {
  std::packaged_task<std::string()> task{std::move(ask)};
  auto answer = task.get_future();
  try {
    net::start_quietly(std::move(task)).detach();
  } catch (const std::system_error&) {
    return instead;
  }
  return answer.wait_for(at_most) == std::future_status::ready ? answer.get() : instead;
}

std::string default_owner_label() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}@{}:{} {}", user_name(), host.data(), getpid(), program_invocation_short_name);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
