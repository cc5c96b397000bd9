// SPDX-License-Identifier: Apache-2.0
// The lock of a directory of ours: of many that want to start or stop its servers, one does. flock(2) and not a pid
// file, because the kernel drops it with its process, however that ends.
#pragma once

#include "base/time.hpp"

#include <sys/types.h>

#include <string>

namespace holdfast::local {

class directory_lock {
public:
  // Waits for it until then. Throws error with errc::local_server.
  directory_lock(const std::string& file, mode_t mode, time_point give_up_at);
  ~directory_lock();
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;

private:
  int fd_ = -1;
};

}  // namespace holdfast::local
