// SPDX-License-Identifier: Apache-2.0
// A job that cron starts on every machine and that one of them does. It shows what a holder owes the others: stop
// when told that the lease is lost, and look before each step that cannot be taken back.
//
//   HOLDFAST_URI=redis://db1 nightly [STEPS]
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stop_token>

using namespace std::chrono_literals;

namespace {

enum class job { finished, stopped };

// Stands for your work: small steps, and a look at `stop` between them.
job make_report(int steps, const std::stop_token& stop) {
  for (int step = 1; step <= steps; ++step) {
    if (stop.stop_requested()) return job::stopped;
    std::printf("step %d of %d\n", step, steps);
  }
  return job::finished;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 3;
  try {
    holdfast::client locks;
    auto body = [&](holdfast::lease& lease) {
      // Called on the client's callback thread, ttl/6 before the end, when renewals have been failing: time to warn.
      std::stop_callback warn{lease.at_risk(), [] { std::fputs("renewals are failing\n", stderr); }};
      if (make_report(steps, lease.lost()) == job::stopped) return false;
      lease.check();  // Throws if the lease ended after the last step. Now the result may be published.
      std::printf("published under token %s\n", lease.token().to_string().c_str());
      return true;
    };
    // A ttl well above the worst pause; no wait, because another machine that holds it is doing the work.
    return locks.synchronize("nightly-report", body, {.ttl = 30s, .wait = 0ms}) ? 0 : 1;
  } catch (const holdfast::error& e) {
    if (e.code() == holdfast::outcome::timed_out) return std::puts("another machine does it tonight"), 0;
    // Unknown is not "nobody has it": somebody may. Do nothing and let the next run ask again.
    std::fprintf(stderr, "nightly: %s\n", e.what());
    return 1;
  }
}
