// SPDX-License-Identifier: Apache-2.0
// For tests of what another system would have in a file's place. Shared by the test files of this room.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace holdfast::local {

// In with_private_mounts() only.
inline bool cover(const char* path, const char* what_is_seen) {
  return ::mount(what_is_seen, path, nullptr, MS_BIND, nullptr) == 0;
}

// What `work` says in a child whose mounts nobody else sees; nullopt if the system does not permit that.
template <class Work>
std::optional<bool> with_private_mounts(Work work) {
  constexpr int not_permitted = 2;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      ::_exit(not_permitted);
    try {
      ::_exit(work() ? 0 : 1);
    } catch (...) {  // Or the child would go on with the tests.
      ::_exit(1);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_permitted) return std::nullopt;
  return status == 0;
}

}  // namespace holdfast::local
