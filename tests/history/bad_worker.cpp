// SPDX-License-Identifier: Apache-2.0
// A process that uses a bad lock at random and writes down what it was told (log.hpp).
//
//   worker SOCKET LOG MISTAKE KIND SEED      KIND: fenced_mutex, reentrant_mutex, semaphore or shared_mutex
//
// It tries only, and ends when its standard input does.
#include "history/bad_locks.hpp"
#include "history/log.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast::test;
using namespace holdfast::test::history;

constexpr auto name = "x";

std::atomic<bool> is_over{false};

class bad_player {
public:
  bad_player(history::log& to, bad_lock& it, std::string kind, unsigned seed)
      : log_{to}, lock_{it}, kind_{std::move(kind)}, random_{seed} {}

  void play() {
    const int part = kind_ == "semaphore" || (kind_ == "shared_mutex" && pick(2) == 0) ? 1 : everything;
    const int hold = ++last_hold_;
    const int number = log_.called(verb::attempt, 0, hold, name, part, bad_lock::ttl_ms);
    auto held = lock_.attempt(part);
    log_.returned(number, held ? outcome::acquired : outcome::busy, held ? held->token : 0);
    if (!held) return let_pass(std::chrono::milliseconds{pick(3)});
    stay(hold, *held);
    if (kind_ == "reentrant_mutex" && pick(2) == 0) lock_again(hold, *held);
    const int last = log_.called(lock_.tells() ? verb::release : verb::drop, 0, hold, name, part, bad_lock::ttl_ms);
    const auto how = lock_.release(*held);
    log_.returned(last, lock_.tells() ? how : outcome::done);
  }

private:
  int pick(int below) { return std::uniform_int_distribution<int>{0, below - 1}(random_); }

  // Mostly short; at times for longer than its lease, as whoever is slow does.
  void stay(int hold, bad_hold& held) {
    const auto time = std::chrono::milliseconds{pick(4) == 0 ? 30 + pick(60) : pick(3)};
    log_.stands_until(hold, held.until);
    for (const auto until = boottime() + time; boottime() < until;) {
      let_pass(1ms);
      lock_.look(held);
      log_.stands_until(hold, held.until);
    }
  }

  void lock_again(int hold, bad_hold& held) {
    const int number = log_.called(verb::again, 0, hold, name, everything, bad_lock::ttl_ms);
    log_.returned(number, outcome::done, held.token);
    stay(hold, held);
    const int one_less = log_.called(verb::back, 0, hold, name, everything, bad_lock::ttl_ms);
    lock_.unlock_once(held);
    log_.returned(one_less, outcome::done);
    stay(hold, held);
  }

  history::log& log_;
  bad_lock& lock_;
  std::string kind_;
  std::mt19937 random_;
  int last_hold_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    history::log to{words.at(1)};
    const auto seed = static_cast<unsigned>(std::stoul(words.at(4)));
    const auto it = make_bad_lock(words.at(2), words.at(0), std::random_device{}());
    bad_player one{to, *it, words.at(3), seed};
    std::thread plays{[&] {
      while (!is_over) one.play();
    }};
    for (std::string line; std::getline(std::cin, line);) {
    }
    is_over = true;
    plays.join();
  } catch (const std::exception& e) {
    std::cerr << "bad worker: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
