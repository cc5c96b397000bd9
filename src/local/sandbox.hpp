// SPDX-License-Identifier: Apache-2.0
// For tests of what a process sees that may not do, or has no more of, what we need. Shared by the test files of this
// room.
#pragma once

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace holdfast::local {

// In a child only: it stays.
inline bool answer_call(int system_call, unsigned answer) {
  const auto number = static_cast<unsigned>(system_call);
  std::array<sock_filter, 4> steps{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                    BPF_STMT(BPF_RET | BPF_K, answer), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{steps.size(), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Likewise: it fails with `error_number`, or ends the process that calls it.
inline bool refuse(int system_call, int error_number) {
  return answer_call(system_call, SECCOMP_RET_ERRNO | (static_cast<unsigned>(error_number) & SECCOMP_RET_DATA));
}
inline bool end_with(int system_call) { return answer_call(system_call, SECCOMP_RET_KILL_PROCESS); }

// The same, as a program meets it that has opened all that it may.
inline bool refuse_descriptors() {
  const rlimit none{0, 0};
  return ::setrlimit(RLIMIT_NOFILE, &none) == 0;
}

// In a child only: it stays. For who may do everything modes mean nothing.
inline bool become_nobody() {
  constexpr unsigned nobody = 65'534;
  return ::geteuid() != 0 || (::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0);
}

// A directory with a mode that is too little even for its owner, whom become_nobody() makes us.
inline bool make_closed_directory(const std::string& parent, const std::string& directory, mode_t mode) {
  constexpr unsigned nobody = 65'534;
  return (::geteuid() != 0 || ::chmod(parent.c_str(), 0755) == 0) && ::mkdir(directory.c_str(), 0700) == 0 &&
         (::geteuid() != 0 || ::chown(directory.c_str(), nobody, nobody) == 0) && ::chmod(directory.c_str(), mode) == 0;
}

// What `work` says in a child in which `prepare` was; nullopt if the system does not permit that.
template <class Prepare, class Work>
std::optional<bool> in_sandbox(Prepare prepare, Work work) {
  constexpr int not_permitted = 2;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!prepare()) ::_exit(not_permitted);
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
