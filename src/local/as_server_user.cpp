// SPDX-License-Identifier: Apache-2.0
#include "local/as_server_user.hpp"

#include "local/failure.hpp"

#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

namespace holdfast::local {
namespace {

// setgroups(3) would change them for all threads.
int set_groups_of_thread(const std::vector<gid_t>& groups) {
#ifdef SYS_setgroups32
  constexpr long number = SYS_setgroups32;
#else
  constexpr long number = SYS_setgroups;
#endif
  return static_cast<int>(::syscall(number, groups.size(), groups.data()));
}

std::vector<gid_t> groups_of_thread() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return groups;
}

}  // namespace

kept_by_us::kept_by_us() noexcept : is_dumpable_{::prctl(PR_GET_DUMPABLE)}, parent_{::getppid()} {
  ::prctl(PR_GET_PDEATHSIG, &signal_);
}

void kept_by_us::give_back() const noexcept {
  if (is_dumpable_ == 1) ::prctl(PR_SET_DUMPABLE, 1);
  if (signal_ == 0) return;
  ::prctl(PR_SET_PDEATHSIG, signal_);
  if (::getppid() != parent_) ::raise(signal_);
}

namespace {

// These calls do not say whether they succeed, and give what was before.
bool act_as(uid_t user, gid_t group) noexcept {
  constexpr unsigned nobody = ~0u;
  ::setfsgid(group);
  ::setfsuid(user);
  return static_cast<uid_t>(::setfsuid(nobody)) == user && static_cast<gid_t>(::setfsgid(nobody)) == group;
}

}  // namespace

as_server_user::as_server_user(const place& where) : is_another_{where.server_user() != ::geteuid()} {
  if (!is_another_) return;
  our_groups_ = groups_of_thread();
  const bool has_groups = set_groups_of_thread({where.group}) == 0;
  const int error_number = has_groups ? EPERM : errno;
  if (has_groups && act_as(where.server_user(), where.group)) return;
  be_ourselves_again();
  if (has_groups) set_groups_of_thread(our_groups_);
  kept_.give_back();
  fail_with_errno(where.directory,
                  "Its server is its owner's, user " + std::to_string(where.server_user()) +
                      ", whom this process may not act as (CAP_SETUID, CAP_SETGID); use it as a member of its group.",
                  error_number);
}

as_server_user::~as_server_user() {
  if (!is_another_) return;
  be_ourselves_again();
  set_groups_of_thread(our_groups_);
  kept_.give_back();
}

void be_ourselves_again() noexcept { act_as(::geteuid(), ::getegid()); }

}  // namespace holdfast::local
