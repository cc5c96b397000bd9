// SPDX-License-Identifier: Apache-2.0
// In a directory that is shared with a group, root is nobody but the server's user. Any member can exchange what lies
// there between two looks at it, also for what no look tells from a file of the server's: a file of another member's
// that only that one may read, moved to where we would copy it or change its mode. So what root does there is done with
// that user's rights, as to files, and no exchange is worth more than what that user could do itself.
//
// And not in a child that has become that user: a fork of a process with threads must not allocate, that user could
// kill the child, and each answer would have to come back through a pipe. The kernel has these rights for each thread.
#pragma once

#include "local/directory.hpp"

#include <sys/types.h>

#include <vector>

namespace holdfast::local {

// The kernel takes these from whoever changes its rights: the signal for its parent's end, which is the thread's, and
// that the process may be dumped and traced.
class kept_by_us {
public:
  kept_by_us() noexcept;
  // The parent may have ended meanwhile: then the signal is for now.
  void give_back() const noexcept;

private:
  int signal_ = 0;
  int is_dumpable_ = 0;
  pid_t parent_ = 0;
};

// For as long as it lives, in this thread and in what that forks. Nothing changes where the server's user is who we
// are. Signals, processes and limits are ours all the time.
class as_server_user {
public:
  // Throws error with errc::local_server where the system does not permit it.
  explicit as_server_user(const place& where);
  ~as_server_user();
  as_server_user(const as_server_user&) = delete;
  as_server_user& operator=(const as_server_user&) = delete;

private:
  bool is_another_ = false;
  std::vector<gid_t> our_groups_{};
  const kept_by_us kept_{};
};

// Between fork and exec: as files are concerned we are ourselves again, but for our groups.
void be_ourselves_again() noexcept;

}  // namespace holdfast::local
