// SPDX-License-Identifier: Apache-2.0
// A thousand acquisitions under way at once, without a thread each: asio.hpp, against hiredis that pipelines the very
// same scripts on one connection, a thousand requests to a write (bench/overheard.hpp). redis-benchmark pipelines, too,
// but cannot give back what it was granted.
#include "bench/figure.hpp"
#include "bench/overheard.hpp"
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

double pipelined_rate(const hiredis& server, const overheard& heard, seconds how_long) {
  long pairs = 0;
  const auto from = steady::now();
  for (; steady::now() - from < how_long; pairs += at_once) heard.replay(server);
  return static_cast<double>(pairs) / seconds{steady::now() - from}.count();
}

}  // namespace

void in_flight(const course& how) {
  const hiredis server{how.where};
  const overheard heard{how.where};
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
