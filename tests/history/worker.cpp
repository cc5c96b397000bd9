// SPDX-License-Identifier: Apache-2.0
// A process that uses holdfast's public API at random and writes down what it was told (log.hpp).
//
//   worker URI LOG KIND SEED NAME...      KIND: fenced_mutex, reentrant_mutex, shared_mutex, or the size of a semaphore
//
// A thread for each NAME; they share one client, and those of one name its object. Of a name that begins with "line"
// they also wait. It ends when its standard input does.
#include "history/log.hpp"
#include "support/eventually.hpp"

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast::test;
using namespace holdfast::test::history;
using namespace std::chrono_literals;

constexpr auto ttl = 300ms;

std::atomic<int> last_hold{0};
std::atomic<bool> is_over{false};

// What all kinds have in common: chance, the log, and how long to stay.
class player {
public:
  player(history::log& to, int thread, unsigned seed) : log_{to}, thread_{thread}, random_{seed} {}
  virtual ~player() = default;
  virtual void play(const std::string& name) = 0;

protected:
  int pick(int below) { return std::uniform_int_distribution<int>{0, below - 1}(random_); }
  bool is_one_in(int many) { return pick(many) == 0; }

  static bool may_wait(const std::string& name) { return name.starts_with("line"); }

  int call(verb what, int hold, const std::string& name, int part = everything) {
    return log_.called(what, thread_, hold, name, part, ttl.count());
  }

  std::chrono::milliseconds some_time() {
    if (is_one_in(30)) return std::chrono::milliseconds{20 + pick(40)};
    return std::chrono::milliseconds{is_one_in(2) ? 0 : pick(4)};
  }

  // Every millisecond it looks what it is told.
  template <class Look>
  void stay(std::chrono::milliseconds time, Look look) {
    look();
    for (const auto until = boottime() + time; boottime() < until;) {
      let_pass(1ms);
      look();
    }
  }

  history::log& log_;
  int thread_;

private:
  std::mt19937 random_;
};

// Fenced mutex, semaphore and reader-writer lock: guards.
class holder_of_leases : public player {
public:
  using begin = std::function<std::optional<holdfast::lease>(const std::string&, verb, int part,
                                                             const holdfast::acquire_options&, std::error_code&)>;
  using become_reader = std::function<void(const std::string&, holdfast::lease&, std::error_code&)>;

  holder_of_leases(history::log& to, int thread, unsigned seed, int parts, begin how, become_reader downgrade)
      : player{to, thread, seed}, parts_{parts}, begin_{std::move(how)}, downgrade_{std::move(downgrade)} {}

  void play(const std::string& name) override {
    const verb what = may_wait(name) && !is_one_in(3) ? verb::acquire : verb::attempt;
    const int hold = ++last_hold;
    const int part = some_part();
    holdfast::acquire_options options{.ttl = ttl, .wait = std::chrono::milliseconds{50 + pick(1500)}};
    if (is_one_in(8)) options.renew = holdfast::renewal::none;
    if (parts_ > 1) options.permits = part;

    std::error_code ec;
    const int number = call(what, hold, name, part);
    auto held = begin_(name, what, part, options, ec);
    log_.returned(number, outcome_of(held.has_value(), ec), held ? held->token().value() : 0);
    if (!held) return let_pass(some_time());
    const auto look = [&] { note(hold, *held); };
    const bool until_it_ends = options.renew == holdfast::renewal::none && is_one_in(8);
    stay(until_it_ends ? ttl : some_time(), look);
    if (downgrade_ && part == everything && is_one_in(3)) {
      become_a_reader(name, hold, *held);
      stay(some_time(), look);
    }
    give_back(name, hold, std::move(*held));
  }

private:
  // A semaphore's permits; of a shared lock mostly readers.
  int some_part() {
    if (downgrade_) return is_one_in(3) ? everything : 1;
    return parts_ > 1 ? 1 + pick(parts_) : parts_;
  }

  static outcome outcome_of(bool is_held, const std::error_code& ec) {
    if (is_held) return outcome::acquired;
    if (!ec) return outcome::busy;
    return ec == holdfast::outcome::timed_out ? outcome::timed_out : outcome::unknown;
  }

  // From before the look on, it stands for what it says is left.
  void note(int hold, const holdfast::lease& held) {
    const auto before = boottime();
    if (const auto left = held.remaining(); left > 0ms) log_.stands_until(hold, (before + left).count());
  }

  void become_a_reader(const std::string& name, int hold, holdfast::lease& held) {
    std::error_code ec;
    const int number = call(verb::downgrade, hold, name);
    downgrade_(name, held, ec);
    auto how = outcome::done;
    if (ec) how = ec == holdfast::outcome::lost ? outcome::already_lost : outcome::unknown;
    log_.returned(number, how);
  }

  void give_back(const std::string& name, int hold, holdfast::lease held) {
    if (is_one_in(10)) {
      const int number = call(verb::drop, hold, name);
      held = {};
      return log_.returned(number, outcome::done);
    }
    const int number = call(verb::release, hold, name);
    switch (held.release()) {
      case holdfast::release_outcome::released: return log_.returned(number, outcome::released);
      case holdfast::release_outcome::already_lost: return log_.returned(number, outcome::already_lost);
      case holdfast::release_outcome::unknown: return log_.returned(number, outcome::unknown);
    }
  }

  int parts_;  // 0: a mutex or a shared lock. Else the size of the semaphore.
  begin begin_;
  become_reader downgrade_;
};

// A recursive_mutex, one object for both threads.
class reentrant_player : public player {
public:
  using mutexes = std::map<std::string, std::unique_ptr<holdfast::recursive_mutex>>;

  reentrant_player(history::log& to, int thread, unsigned seed, mutexes& all)
      : player{to, thread, seed}, mutexes_{all} {}

  void play(const std::string& name) override {
    auto& it = *mutexes_.at(name);
    const bool waits = may_wait(name) && !is_one_in(3);
    const int hold = ++last_hold;
    const int number = call(waits ? verb::acquire : verb::attempt, hold, name);
    bool is_ours = false;
    try {
      is_ours = waits ? it.try_lock_for(std::chrono::milliseconds{50 + pick(1500)}) : it.try_lock();
    } catch (const holdfast::error&) {
      return log_.returned(number, outcome::unknown);
    }
    if (!is_ours) {
      log_.returned(number, waits ? outcome::timed_out : outcome::busy);
      return let_pass(some_time());
    }
    log_.returned(number, outcome::acquired, it.token().value());
    inside(it, hold, name, pick(3));
    const int last = call(verb::unlock, hold, name);
    it.unlock();
    log_.returned(last, outcome::done);
  }

private:
  void inside(holdfast::recursive_mutex& it, int hold, const std::string& name, int deeper) {
    const auto look = [&] {
      const auto before = boottime();
      if (it.valid()) log_.stands_until(hold, before.count());
    };
    stay(some_time(), look);
    if (deeper == 0) return;
    const int number = call(verb::again, hold, name);
    if (!it.try_lock()) throw std::runtime_error("the holder was refused");
    log_.returned(number, outcome::done, it.token().value());
    inside(it, hold, name, deeper - 1);
    const int one_less = call(verb::back, hold, name);
    it.unlock();
    log_.returned(one_less, outcome::done);
    stay(some_time(), look);
  }

  mutexes& mutexes_;
};

// The locks of one process.
struct locks_of_it {
  locks_of_it(const std::string& uri, const std::string& of_kind, const std::vector<std::string>& names)
      : locks{uri, how()}, kind{of_kind} {
    for (const auto& name : names) {
      if (kind == "reentrant_mutex") {
        reentrant[name] = std::make_unique<holdfast::recursive_mutex>(locks, name, options());
      } else if (kind == "shared_mutex") {
        shared[name] = std::make_unique<holdfast::shared_mutex>(locks, name);
      } else if (kind != "fenced_mutex") {
        places[name] = std::make_unique<holdfast::semaphore>(locks, name, std::stoi(kind));
      }
    }
  }

  static holdfast::client_options how() {
    holdfast::client_options over;
    over.timeout = 1s;
    return over;
  }
  static holdfast::acquire_options options() { return {.ttl = ttl}; }

  std::optional<holdfast::lease> begin(const std::string& name, verb what, int part,
                                       const holdfast::acquire_options& over, std::error_code& ec) {
    const bool waits = what == verb::acquire;
    if (kind == "fenced_mutex") return waits ? locks.acquire(name, over, ec) : locks.try_acquire(name, over, ec);
    if (kind != "shared_mutex") {
      auto& it = *places.at(name);
      return waits ? it.acquire(over, ec) : it.try_acquire(over, ec);
    }
    auto& it = *shared.at(name);
    if (part == everything) return waits ? it.acquire(over, ec) : it.try_acquire(over, ec);
    return waits ? it.acquire_shared(over, ec) : it.try_acquire_shared(over, ec);
  }

  std::unique_ptr<player> make_player(history::log& to, int thread, unsigned seed) {
    if (kind == "reentrant_mutex") return std::make_unique<reentrant_player>(to, thread, seed, reentrant);
    const bool is_semaphore = kind != "fenced_mutex" && kind != "shared_mutex";
    holder_of_leases::become_reader downgrade;
    if (kind == "shared_mutex") {
      downgrade = [this](const std::string& name, holdfast::lease& held, std::error_code& ec) {
        shared.at(name)->downgrade(held, ec);
      };
    }
    return std::make_unique<holder_of_leases>(
        to, thread, seed, is_semaphore ? std::stoi(kind) : everything,
        [this](auto&&... all) -> std::optional<holdfast::lease> { return begin(all...); }, std::move(downgrade));
  }

  holdfast::client locks;
  std::string kind;
  reentrant_player::mutexes reentrant{};
  std::map<std::string, std::unique_ptr<holdfast::shared_mutex>> shared{};
  std::map<std::string, std::unique_ptr<holdfast::semaphore>> places{};
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    history::log to{words.at(1)};
    const std::vector<std::string> names{words.begin() + 4, words.end()};
    locks_of_it all{words.at(0), words.at(2), names};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < names.size(); ++thread) {
      threads.emplace_back([&, thread] {
        const auto seed = static_cast<unsigned>(std::stoul(words.at(3)) * names.size() + thread);
        const auto it = all.make_player(to, static_cast<int>(thread), seed);
        while (!is_over) it->play(names[thread]);
      });
    }
    for (std::string line; std::getline(std::cin, line);) {
    }
    is_over = true;
    for (auto& thread : threads) thread.join();
  } catch (const std::exception& e) {
    std::cerr << "history worker: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
