// SPDX-License-Identifier: Apache-2.0
// A process that locks on behalf of a test, which can stop, kill and question it.
//
//   worker URI hold NAME TTL_MS STORE     "acquired TOKEN", then a line for each line of input:
//                                         valid | lost | write VALUE | wall | release | exit; wall: the seconds of
//                                         its wall clock
//   worker URI queue NAME TTL_MS          for each line "go": waits, and says "acquired TOKEN AT_NS"; for each line
//                                         "release": "released OUTCOME AT_NS", CLOCK_BOOTTIME just before the call;
//                                         for each line "go MS": waits for so long, and says "timed_out AT_NS" then
//   worker URI contend NAME ROUNDS WITNESS HOLD_US [plain]
//                                         acquires and releases before the witness, ROUNDS times or for so long
//                                         ("3s"); then "done HOLDS"
//   worker URI share NAME ROUNDS WITNESS HOLD_US TTL_MS reader | writer | SIZE
//                                         as contend, with others: to read, to write, or for one permit of SIZE
//   worker URI retry NAME HELD SECONDS    one thread each, without a pause: tries HELD, which somebody else holds;
//                                         waits a millisecond for HELD; acquires and releases NAME. Then "done TRIES
//                                         WAITS HOLDS ERROR COUNT ERROR COUNT ..."
//   worker URI static NAME                "acquired TOKEN", and ends: client and lease are static, as many a program's
//   worker URI end NAME PLACE HOW         "acquired TOKEN"; with the next line it ends, its lease alive. PLACE of
//   client
//                                         and lease: static | stack; HOW: return | exit | quick_exit, the latter with 3
//   worker URI wait NAME FREE             acquires FREE, and then NAME, which somebody else holds, both with handlers
//                                         that hide their executor; "waits"; with the next line it exits with 3, its
//                                         client static
//   worker URI endure NAME:TTL_MS,... DIRECTORY
//                                         contends for the locks, half of it for the first, until DIRECTORY/stop
//                                         exists, whatever fails; those named long... are only tried, and held for
//                                         two ttls. Beside it NAME.witness and NAME.store. "done WHAT COUNT WHAT ..."
// HOLDFAST_TEST_MAX_TTL_MS is client_options::max_ttl.
#include "integration/endure.hpp"
#include "integration/waiting_end.hpp"
#include "support/eventually.hpp"
#include "support/fenced_store.hpp"
#include "support/sharing_witness.hpp"
#include "support/witness.hpp"

#include <unistd.h>
#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

int hold(holdfast::client& locks, const std::vector<std::string>& words) {
  holdfast::test::fenced_store store{words.at(4)};
  auto held = locks.acquire(words.at(2), {.ttl = std::chrono::milliseconds{std::stoi(words.at(3))}, .wait = 30s});
  const auto token = held.token().value();
  store.raise(token);
  std::cout << "acquired " << token << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream parts{line};
    std::string verb;
    parts >> verb;
    if (verb == "valid") {
      std::cout << held.valid() << std::endl;
    } else if (verb == "lost") {
      std::cout << held.lost().stop_requested() << std::endl;
    } else if (verb == "write") {
      std::int64_t value = 0;
      parts >> value;
      std::cout << store.write(token, value) << std::endl;
    } else if (verb == "wall") {
      std::cout << std::time(nullptr) << std::endl;
    } else if (verb == "release") {
      std::cout << static_cast<int>(held.release()) << std::endl;
    } else {
      break;
    }
  }
  return 0;
}

int hold_to_the_end(holdfast::client& begun, const std::vector<std::string>& words) {
  static holdfast::client locks = std::move(begun);
  static holdfast::lease held;
  held = locks.acquire(words.at(2), {.ttl = 60s});
  std::cout << "acquired " << held.token().value() << std::endl;
  return 0;
}

int end(holdfast::client& begun, const std::vector<std::string>& words) {
  const auto acquire = [&](holdfast::client& locks) {
    auto held = locks.acquire(words.at(2), {.ttl = 60s});
    std::cout << "acquired " << held.token().value() << std::endl;
    std::string line;
    std::getline(std::cin, line);
    return held;
  };
  holdfast::lease on_stack;
  if (words.at(3) == "static") {
    static holdfast::client locks = std::move(begun);
    static holdfast::lease held;
    held = acquire(locks);
  } else {
    on_stack = acquire(begun);
  }
  if (words.at(4) == "exit") std::exit(3);
  if (words.at(4) == "quick_exit") std::quick_exit(3);
  return 0;
}

int queue(holdfast::client& locks, const std::vector<std::string>& words) {
  const auto ttl = std::chrono::milliseconds{std::stoi(words.at(3))};
  holdfast::lease held;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "go") {
      held = locks.acquire(words.at(2), {.ttl = ttl});
      const auto at = holdfast::test::boottime();
      std::cout << "acquired " << held.token().value() << ' ' << at.count() << std::endl;
    } else if (line == "release") {
      const auto at = holdfast::test::boottime();
      const auto outcome = static_cast<int>(held.release());
      std::cout << "released " << outcome << ' ' << at.count() << std::endl;
    } else if (line.starts_with("go ")) {
      const std::chrono::milliseconds within{std::stoi(line.substr(3))};
      std::error_code ec;
      const auto got = locks.acquire(words.at(2), {.ttl = ttl, .wait = within}, ec);
      const auto end = got ? "acquired" : holdfast::to_string(static_cast<holdfast::errc>(ec.value()));
      std::cout << end << ' ' << holdfast::test::boottime().count() << std::endl;
    } else {
      break;
    }
  }
  return 0;
}

holdfast::test::part part_of(const std::string& how) {
  if (how == "reader") return holdfast::test::part::some;
  return how == "writer" ? holdfast::test::part::all : holdfast::test::part::one;
}

int share(holdfast::client& locks, const std::vector<std::string>& words) {
  holdfast::test::sharing_witness seen{words.at(4), part_of(words.at(7))};
  const int number = std::stoi(words.at(3));
  const bool is_time = words.at(3).ends_with('s');
  const auto end = holdfast::test::boottime() + std::chrono::seconds{number};
  const auto stay = std::chrono::microseconds{std::stoi(words.at(5))};
  const holdfast::acquire_options options{.ttl = std::chrono::milliseconds{std::stoi(words.at(6))}, .wait = 120s};

  holdfast::shared_mutex both{locks, words.at(2)};
  holdfast::semaphore places{locks, words.at(2),
                             part_of(words.at(7)) == holdfast::test::part::one ? std::stoi(words.at(7)) : 1};
  const auto acquire = [&] {
    switch (part_of(words.at(7))) {
      case holdfast::test::part::some: return both.acquire_shared(options);
      case holdfast::test::part::all: return both.acquire(options);
      case holdfast::test::part::one: break;
    }
    return places.acquire(options);
  };
  (void)locks.inspect(words.at(2));  // Connects: what is asked from here on stands in line a moment later.
  int holds = 0;
  for (; is_time ? holdfast::test::boottime() < end : holds < number; ++holds) {
    seen.ask();
    auto held = acquire();
    seen.enter(held.token().value());
    holdfast::test::let_pass(stay);
    seen.exit(held.token().value());
    held.release();
  }
  std::cout << "done " << holds << std::endl;
  return 0;
}

int contend(holdfast::client& locks, const std::vector<std::string>& words) {
  holdfast::test::witness seen{words.at(4)};
  const int number = std::stoi(words.at(3));
  const bool is_time = words.at(3).ends_with('s');
  const auto end = holdfast::test::boottime() + std::chrono::seconds{number};
  const auto stay = std::chrono::microseconds{std::stoi(words.at(5))};
  int holds = 0;
  for (; is_time ? holdfast::test::boottime() < end : holds < number; ++holds) {
    auto held = locks.acquire(words.at(2), {.ttl = 5s, .wait = 120s});
    seen.enter(::getpid(), held.token().value());
    const auto until = holdfast::test::boottime() + stay;
    while (holdfast::test::boottime() < until) {
    }
    seen.exit(::getpid(), held.token().value());
    held.release();
  }
  std::cout << "done " << holds << std::endl;
  return 0;
}

int retry(holdfast::client& locks, const std::vector<std::string>& words) {
  const auto& held = words.at(3);
  const auto end = holdfast::test::boottime() + std::chrono::seconds{std::stoi(words.at(4))};
  std::mutex guards_failures;
  std::map<std::string, long> failures;  // A server that was slow to answer, for example.
  const auto count_failure = [&](std::error_code ec) {
    const std::lock_guard held_by_us{guards_failures};
    ++failures[to_string(static_cast<holdfast::errc>(ec.value()))];
  };
  const auto until_end = [end](const auto& what) {
    long count = 0;
    for (; holdfast::test::boottime() < end; ++count) what();
    return count;
  };
  const auto must_be_held = [&](bool got, std::error_code ec) {
    if (got) std::abort();  // Somebody else's lock.
    if (ec && ec != holdfast::errc::timed_out) count_failure(ec);
  };
  long tries = 0;
  long waits = 0;
  std::thread trier{[&] {
    std::error_code ec;
    tries = until_end([&] { must_be_held(locks.try_acquire(held, {}, ec).has_value(), ec); });
  }};
  std::thread waiter{[&] {
    std::error_code ec;
    waits = until_end([&] { must_be_held(locks.acquire(held, {.wait = 1ms}, ec).has_value(), ec); });
  }};
  std::error_code ec;
  const long holds = until_end([&] {
    if (!locks.acquire(words.at(2), {}, ec)) count_failure(ec);
  });
  trier.join();
  waiter.join();
  std::cout << "done " << tries << ' ' << waits << ' ' << holds;
  for (const auto& [what, count] : failures) std::cout << ' ' << what << ' ' << count;
  std::cout << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    holdfast::client_options how;
    how.user = variable("HOLDFAST_TEST_USER");
    how.password = variable("HOLDFAST_TEST_PASSWORD");
    if (const auto most = variable("HOLDFAST_TEST_MAX_TTL_MS"); !most.empty())
      how.max_ttl = std::chrono::milliseconds{std::stoi(most)};
    if (words.size() > 6 && words.at(6) == "plain") how.names = holdfast::naming::plain;
    holdfast::client locks{words.at(0), how};
    if (words.at(1) == "hold") return hold(locks, words);
    if (words.at(1) == "static") return hold_to_the_end(locks, words);
    if (words.at(1) == "end") return end(locks, words);
    if (words.at(1) == "wait") return holdfast::test::end_waiting(locks, words);
    if (words.at(1) == "queue") return queue(locks, words);
    if (words.at(1) == "share") return share(locks, words);
    if (words.at(1) == "retry") return retry(locks, words);
    if (words.at(1) == "endure") return holdfast::test::endure(locks, words);
    return contend(locks, words);
  } catch (const std::exception& e) {
    std::cout << "failed: " << e.what() << std::endl;
    return 1;
  }
}
