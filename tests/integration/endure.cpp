// SPDX-License-Identifier: Apache-2.0
#include "integration/endure.hpp"

#include "support/eventually.hpp"
#include "support/fenced_store.hpp"
#include "support/witness.hpp"

#include <unistd.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::string name_of(std::error_code ec) {
  return ec.category() == error_category() ? to_string(static_cast<errc>(ec.value())) : ec.message();
}

const char* name_of(release_outcome how) {
  switch (how) {
    case release_outcome::released: return "released";
    case release_outcome::already_lost: return "release.already_lost";
    case release_outcome::unknown: break;
  }
  return "release.unknown";
}

// One lock, and what it protects.
struct place {
  place(const std::string& lock, std::chrono::milliseconds its_ttl, const std::string& directory)
      : name{lock},
        ttl{its_ttl},
        is_long{lock.starts_with("long")},
        seen{directory + "/" + lock + ".witness"},
        store{directory + "/" + lock + ".store"} {}

  std::string name;
  std::chrono::milliseconds ttl;
  bool is_long;  // Held for longer than a ttl, and only ever tried.
  witness seen;
  fenced_store store;
};

// What a holder read and had not written when it lost its lease. Written later all the same, as by a process that
// was stopped in between: the store must refuse it once somebody else was there.
struct unwritten {
  place* at;
  std::uint64_t token;
  std::int64_t value;
};

class worker {
public:
  worker(client& locks, const std::vector<std::string>& words) : locks_{locks}, stop_file_{words.at(3) + "/stop"} {
    std::istringstream all{words.at(2)};
    for (std::string one; std::getline(all, one, ',');) {
      const auto colon = one.find(':');
      places_.emplace_back(one.substr(0, colon), std::chrono::milliseconds{std::stoi(one.substr(colon + 1))},
                           words.at(3));
    }
  }

  void run() {
    while (!std::filesystem::exists(stop_file_)) {
      // Half of it on the first one, which is hot for that reason.
      auto& at = random_() % 2 == 0 ? places_.front() : places_[random_() % places_.size()];
      std::error_code ec;
      auto held = at.is_long ? locks_.try_acquire(at.name, {.ttl = at.ttl}, ec)
                             : locks_.acquire(at.name, {.ttl = at.ttl, .wait = long_wait}, ec);
      if (held) {
        const auto late = std::exchange(late_, {});
        stay(at, *held);
        write_at_last(late);
        ++tally_[name_of(held->release())];
      } else if (ec) {
        ++tally_["failed." + name_of(ec)];
        let_pass(20ms);
      }
    }
  }

  // "done NAME COUNT NAME COUNT ..."
  void say() const {
    std::cout << "done";
    for (const auto& [what, count] : tally_) std::cout << ' ' << what << ' ' << count;
    std::cout << std::endl;
  }

private:
  static constexpr auto long_wait = 30s;

  // An instant at which it was valid, at most a millisecond from when it was asked; empty when it is not.
  static std::optional<std::chrono::nanoseconds> valid_at(const lease& held) {
    for (;;) {
      const auto before = boottime();
      if (!held.valid()) return std::nullopt;
      const auto after = boottime();
      if (after - before < 1ms) return after;
    }
  }

  void stay(place& at, const lease& held) {
    const auto token = held.token().value();
    const auto since = valid_at(held);
    if (!since) return lose(held, "lost_before_use");
    at.seen.enter(::getpid(), token, *since);
    const auto value = at.store.raise(token) ? at.store.read(token) : std::nullopt;
    if (!value) return refuse(at, held, *since);

    const auto until = *since + (at.is_long ? 2 * at.ttl : std::chrono::milliseconds{5});
    auto last = *since;
    for (bool is_over = false; !is_over;) {
      let_pass(1ms);
      // Taken before it is asked: it was valid at that instant.
      const auto now = boottime();
      if (!held.valid()) {
        at.seen.exit(::getpid(), token, last);
        late_.push_back({&at, token, *value});
        return lose(held, "lost_in_use");
      }
      last = now;
      is_over = now >= until;
    }
    const bool is_written = at.store.write(token, *value + 1);
    if (!is_written) return refuse(at, held, last);
    ++tally_["written"];
    at.seen.exit(::getpid(), token, last);
  }

  // To be told once valid() is false is what makes it no violation.
  void lose(const lease& held, const char* when) {
    ++tally_[when];
    const bool is_told = eventually([&] { return held.lost().stop_requested(); });
    ++tally_[is_told ? "told." + name_of(held.lost_reason()) : "untold"];
  }

  // Somebody with a larger token has been there. If we are valid even now, both of us were.
  void refuse(place& at, const lease& held, std::chrono::nanoseconds last) {
    at.seen.exit(::getpid(), held.token().value(), last);
    if (held.valid())
      ++tally_["refused_while_valid"];
    else
      lose(held, "refused_in_time");
  }

  // One hold later, so that others have had the time to be there.
  void write_at_last(const std::deque<unwritten>& late) {
    for (const auto& one : late) {
      const bool is_written = one.at->store.write(one.token, one.value + 1);
      ++tally_[is_written ? "written" : "stale_refused"];
    }
  }

  client& locks_;
  const std::string stop_file_;
  std::deque<place> places_;
  std::minstd_rand random_{static_cast<unsigned>(::getpid())};
  std::deque<unwritten> late_;
  std::map<std::string, long> tally_;
};

}  // namespace

int endure(client& locks, const std::vector<std::string>& words) {
  worker self{locks, words};
  self.run();
  self.say();
  return 0;
}

}  // namespace holdfast::test
