// SPDX-License-Identifier: Apache-2.0
// The threads of `script/campaign cluster`: they contend for a thousand locks, each with a client of its own. Some hold
// them for long, so that leases are renewed, and are valid, while slots move and primaries fail over.
#pragma once

#include "integration/cluster_fixture.hpp"
#include "support/witness.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

// Who is in the middle of a long hold, and of what.
struct stay {
  std::string name;
  std::uint64_t token = 0;
  bool is_renewed = false;
  std::chrono::nanoseconds since{0};
};

// What the threads saw, each with a client of its own.
struct diary {
  std::mutex mutex{};
  std::map<std::string, std::vector<sighted_hold>> holds{};
  std::map<int, stay> stays{};
  std::map<std::string, int> errors{};
  int lost = 0;              // Leases that ended before they were given back, and said so.
  int untold = 0;            // And did not say so.
  int unknown_releases = 0;  // Which may have been done or not.
  std::chrono::nanoseconds longest{0};
  std::chrono::nanoseconds longest_release{0};
};

class cluster_crowd : public on_a_cluster {
protected:
  static constexpr int threads = 20;
  // Of them. Every other one holds each lease for two ttls, the others as long as it lasts;
  static constexpr int stayers = 8;
  static constexpr int heirs = 4;  // each of those is waited for by one of these.
  static constexpr unsigned names = 1000;
  static constexpr unsigned hot = 3;  // Of them; every fourth acquire.
  static constexpr auto waits = 40s;  // For a failover and a quarantine behind it, on a busy machine.
  static constexpr auto own_timeout = 20s;
  // The death of a primary takes 4 s, and a lease that was renewed a third of it before lives through that.
  static constexpr auto max_ttl = 8s;
  static constexpr auto ttl = max_ttl;

  // `HOLDFAST_QUARANTINE=none` shows that the judge sees what a quarantine prevents.
  client of_the_crowd() {
    auto how = options(own_timeout);
    how.max_ttl = max_ttl;
    const char* asked = std::getenv("HOLDFAST_QUARANTINE");
    if (asked && std::string_view{asked} == "none") how.quarantine = quarantine_mode::trust_every_write_is_synced;
    return client{lab_.uri(), how};
  }

  // No two of those who stay want the same, nor a hot one: nobody waits for two of them, one after the other.
  std::string a_name(std::minstd_rand& random, int number) {
    if (const int before = 2 * (threads - number) - 1; before < 2 * heirs) {
      const std::lock_guard guard{diary_.mutex};
      const auto held = diary_.stays.find(before);
      if (held != diary_.stays.end()) return held->second.name;
    }
    auto one = random() % 4 == 0 ? random() % hot : random() % names;
    if (number < stayers) one = hot + random() % (names / stayers - 1) * stayers + static_cast<unsigned>(number);
    return "n" + std::to_string(one);
  }

  // Whose lease is not renewed hears nothing before its time is over, whatever has become of it.
  static renewal renewal_of(int number) {
    return number < stayers && number % 2 == 1 ? renewal::none : renewal::automatic;
  }

  void contend(const std::stop_token& stop, int number) {
    auto locks = of_the_crowd();
    std::minstd_rand random{static_cast<unsigned>(number) + 1};
    std::chrono::nanoseconds stays = (number + 1) * ttl / 4;  // The first time: they do not begin together.
    while (!stop.stop_requested()) {
      const auto name = a_name(random, number);
      const auto began = boottime();
      try {
        auto held = locks.acquire(name, {.ttl = ttl, .wait = waits, .renew = renewal_of(number)});
        const auto took = boottime() - began;
        if (number < stayers)
          stay_with(name, held, number, std::exchange(stays, 2 * ttl), stop);
        else
          note(name, held, look(held, number, [](int looks, auto) { return looks == 3; }));
        give_back(held);
        const std::lock_guard guard{diary_.mutex};
        diary_.longest = std::max(diary_.longest, took);
      } catch (const error& e) {
        const std::lock_guard guard{diary_.mutex};
        ++diary_.errors[std::string{to_string(static_cast<errc>(e.code().value()))} + ": " + e.what()];
        diary_.longest = std::max(diary_.longest, boottime() - began);
      }
    }
  }

  void stay_with(const std::string& name, const lease& held, int number, std::chrono::nanoseconds time,
                 const std::stop_token& stop) {
    const bool is_renewed = renewal_of(number) != renewal::none;
    {
      const std::lock_guard guard{diary_.mutex};
      diary_.stays[number] = {name, held.token().value(), is_renewed, boottime()};
    }
    const auto seen = look(held, number, [&](int, std::chrono::nanoseconds since) {
      let_pass(1ms);
      return stop.stop_requested() || (is_renewed ? since >= time : held.remaining() < 500ms);
    });
    note(name, held, seen);
    const std::lock_guard guard{diary_.mutex};
    diary_.stays.erase(number);
  }

  // A hold is between two instants at which the lease was valid: each is taken before it is asked.
  template <class IsOver>
  static std::optional<sighted_hold> look(const lease& held, int number, IsOver is_over) {
    sighted_hold seen{number, held.token().value(), boottime(), {}};
    seen.last = seen.first;
    if (!held.valid()) return std::nullopt;
    for (int looks = 0; !is_over(looks, seen.last - seen.first); ++looks) {
      const auto now = boottime();
      if (!held.valid()) break;
      seen.last = now;
    }
    return seen;
  }

  void note(const std::string& name, const lease& held, const std::optional<sighted_hold>& seen) {
    const bool is_valid = held.valid();
    const bool is_told = is_valid || eventually([&] { return held.lost().stop_requested(); });
    const std::lock_guard guard{diary_.mutex};
    if (seen) diary_.holds[name].push_back(*seen);
    diary_.lost += is_valid ? 0 : 1;
    diary_.untold += is_told ? 0 : 1;
  }

  void give_back(lease& held) {
    const auto began = boottime();
    const auto how = held.release();
    const std::lock_guard guard{diary_.mutex};
    diary_.unknown_releases += how == release_outcome::unknown ? 1 : 0;
    diary_.longest_release = std::max(diary_.longest_release, boottime() - began);
  }

  diary diary_{};
};

}  // namespace holdfast::test
