// SPDX-License-Identifier: Apache-2.0
// A thousand acquisitions under way at once, without a thread each: asio.hpp, against hiredis that pipelines the very
// same scripts on one connection, a thousand requests to a write. What is sent is overheard from the library itself, so
// the two cannot drift apart. (redis-benchmark pipelines, too, but cannot give back what it was granted.)
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/asio.hpp>

#include <fmt/format.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace bench {

namespace {

using seconds = std::chrono::duration<double>;
using steady = std::chrono::steady_clock;
using words = std::vector<std::string>;

constexpr int at_once = 1000;

// The words of a line of MONITOR.
words quoted(const std::string& line) {
  words found;
  bool is_inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      is_inside = !is_inside;
      if (is_inside) found.emplace_back();
    } else if (is_inside) {
      if (line[i] == '\\') ++i;
      found.back() += line[i];
    }
  }
  return found;
}

// What the library sends for one acquire and one release.
struct overheard {
  words acquire;
  words release;
  std::string name = "bench:overheard";
  std::string owner;
  std::string token;
};

overheard listen(const std::string& where) {
  overheard heard;
  auto locks = make_client(where);
  locks.acquire(heard.name).release();  // Connections are made, scripts are known.
  const hiredis monitor{where};
  must(monitor.ask({"MONITOR"}) == "OK", "MONITOR was refused");
  auto held = locks.acquire(heard.name);
  heard.token = held.token().to_string();
  held.release();
  while (heard.release.empty()) {
    const std::string line = monitor.receive();
    if (line.find(" lua] ") != std::string::npos) continue;
    auto what = quoted(line);
    if (what.empty() || what[0] != "EVALSHA") continue;
    (heard.acquire.empty() ? heard.acquire : heard.release) = std::move(what);
  }
  heard.owner = heard.acquire.at(3 + static_cast<std::size_t>(std::stoi(heard.acquire.at(2))));
  must(std::count(heard.release.begin(), heard.release.end(), heard.owner) == 1, "not a release");
  return heard;
}

// `as` with the name, the owner id and the token of another, and no last instant at which it may take effect.
words replay(const words& as, const overheard& heard, int number, const std::string& owner, const std::string& token) {
  words made;
  for (const auto& word : as) {
    const auto at = word.find(heard.name);
    if (at != std::string::npos) {
      made.push_back(word.substr(0, at) + fmt::format("bench:{}", number) + word.substr(at + heard.name.size()));
    } else if (word == heard.owner) {
      made.push_back(owner);
    } else if (word == heard.token) {
      made.push_back(token);
    } else {
      const bool is_instant = word.size() == 16 && std::all_of(word.begin(), word.end(), ::isdigit);
      made.push_back(is_instant && &as == &heard.acquire ? "0" : word);
    }
  }
  return made;
}

double pipelined_rate(const hiredis& server, const overheard& heard, seconds how_long) {
  static long number = 0;
  long pairs = 0;
  const auto from = steady::now();
  while (steady::now() - from < how_long) {
    words owners;
    for (int i = 0; i < at_once; ++i) {
      owners.push_back(fmt::format("{:032x}", ++number));
      server.send(replay(heard.acquire, heard, i, owners.back(), {}));
    }
    words tokens;
    for (int i = 0; i < at_once; ++i) tokens.push_back(server.receive());
    for (int i = 0; i < at_once; ++i) {
      const auto which = static_cast<std::size_t>(i);
      must(tokens[which].size() == 16, "the replayed acquire was not granted");
      server.send(replay(heard.release, heard, i, owners[which], tokens[which]));
    }
    for (int i = 0; i < at_once; ++i) must(server.receive().size() == 16, "the replayed release was refused");
    pairs += at_once;
  }
  return static_cast<double>(pairs) / seconds{steady::now() - from}.count();
}

// Each name is acquired and released again and again, all of them at once, on one thread of ours.
class flight {
public:
  flight(holdfast::client& locks, seconds how_long)
      : locks_{&locks}, until_{steady::now() + std::chrono::duration_cast<steady::duration>(how_long)} {}

  double rate() {
    const auto from = steady::now();
    for (int i = 0; i < at_once; ++i) acquire(i);
    context_.run();
    return static_cast<double>(pairs_) / seconds{steady::now() - from}.count();
  }

private:
  void acquire(int number) {
    const auto got = [this, number](std::error_code ec, holdfast::lease held) {
      must(!ec, "holdfast: " + ec.message());
      release(number, std::move(held));
    };
    holdfast::async_acquire(*locks_, "bench:" + std::to_string(number), {}, boost::asio::bind_executor(context_, got));
  }
  void release(int number, holdfast::lease held) {
    const auto released = [this, number](holdfast::release_outcome how) {
      must(how == holdfast::release_outcome::released, "holdfast: release failed");
      ++pairs_;
      if (steady::now() < until_) acquire(number);
    };
    holdfast::async_release(std::move(held), boost::asio::bind_executor(context_, released));
  }

  boost::asio::io_context context_{1};
  holdfast::client* locks_;
  steady::time_point until_;
  long pairs_ = 0;
};

}  // namespace

void in_flight(const course& how) {
  const hiredis server{how.where};
  const auto heard = listen(how.where);
  auto locks = make_client(how.where);
  flight{locks, seconds{0.05}}.rate();
  figure found;
  for (int i = 0; i < how.rounds; ++i) {
    found.theirs.push_back(pipelined_rate(server, heard, seconds{how.seconds}));
    found.ours.push_back(flight{locks, seconds{how.seconds}}.rate());
  }
  found.id = "in_flight_1000";
  found.what = "1,000 acquisitions in flight, acquire + release";
  found.unit = "pairs/s";
  found.yardstick = "hiredis, the same scripts pipelined";
  found.goal_is = bound::at_least;
  found.goal = 0.8;
  tell(found);
}

}  // namespace bench
