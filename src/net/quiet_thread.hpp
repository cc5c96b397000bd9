// SPDX-License-Identifier: Apache-2.0
// Threads of ours take no signals: a handler of the program must not find itself on the keeper (H49).
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace holdfast::net {

// As std::thread{body}, with every signal blocked in the new thread. Throws std::system_error as that does.
template <class Body>
std::thread start_quietly(Body&& body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct restore {
    const sigset_t& mask;
    ~restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const at_end{before};
  return std::thread{std::forward<Body>(body)};
}

}  // namespace holdfast::net
