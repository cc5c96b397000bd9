// SPDX-License-Identifier: Apache-2.0
// For tests of what another system would have in a file's place. Shared by the test files of this room.
#pragma once

#include "local/sandbox.hpp"

#include <sched.h>
#include <sys/mount.h>

#include <optional>

namespace holdfast::local {

// In with_private_mounts() only.
inline bool cover(const char* path, const char* what_is_seen) {
  return ::mount(what_is_seen, path, nullptr, MS_BIND, nullptr) == 0;
}

// What `work` says in a child whose mounts nobody else sees; nullopt if the system does not permit that.
template <class Work>
std::optional<bool> with_private_mounts(Work work) {
  const auto prepare = [] {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  };
  return in_sandbox(prepare, work);
}

}  // namespace holdfast::local
