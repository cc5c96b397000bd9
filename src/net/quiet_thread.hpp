// SPDX-License-Identifier: Apache-2.0
// Threads of ours take no signals: a handler of the program must not find itself on the keeper (H49).
#pragma once

#include <holdfast/error.hpp>

#include <csignal>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::net {

// As std::thread{body}, with every signal blocked in the new thread. When there is none to be had, it throws an error
// with the system's own code, so that callers of ours need not know of two types.
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
  try {
    return std::thread{std::forward<Body>(body)};
  } catch (const std::system_error& e) {
    error_detail detail;
    detail.why = "the system gives this process no more threads";
    throw error{e.code(), std::move(detail)};
  }
}

// One of ours that was told to end. `wait`: until it has, unless this is that thread; else it ends by itself.
inline void let_end(std::thread one, bool wait) noexcept {
  if (!one.joinable()) return;
  if (wait && one.get_id() != std::this_thread::get_id()) {
    one.join();
  } else {
    one.detach();
  }
}

// Runs body(0) to body(count - 1) at once, each in such a thread, and returns when all have ended. They must not throw.
// Where one cannot be started, those before it have ended when that is thrown.
template <class Body>
void run_each_quietly(std::size_t count, const Body& body) {
  struct joined {
    std::vector<std::thread> all{};
    ~joined() {
      for (auto& one : all) one.join();
    }
  } threads;
  threads.all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) threads.all.push_back(start_quietly([&body, i] { body(i); }));
}

}  // namespace holdfast::net
