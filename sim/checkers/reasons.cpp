// SPDX-License-Identifier: Apache-2.0
// C5: why an acquire ended without a lease is the truth, too. Timed out: its wait was over, and not for long. Not
// reached, in quarantine, or unknown: something had befallen its process, its connections or the server since it began.
#include "checkers/checker.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>

namespace holdfast::sim {

namespace {

using namespace std::chrono_literals;

class reasons final : public checker {
public:
  using checker::checker;

  void on_call_ended(const call_record& call) override {
    // Its clock drifts, and it sleeps a little too long.
    constexpr duration slack = 10ms;
    if (call.end == call_end::timed_out && in().now() + slack < call.gives_up_at) {
      in().complain("C5", fmt::format("call {} timed out {} us before its wait was over", call.label,
                                      (call.gives_up_at - in().now()) / 1us));
    }
    if (in().healthy_since(call.process) > call.started_at) return;
    const duration answer = 4 * in().slowest_round_trip(call.process);
    const bool is_bounded = call.gives_up_at != end_of_time && !call.is_try && !call.is_durable;
    if (is_bounded && in().now() > call.gives_up_at + answer + slack) {
      in().complain("C5", fmt::format("call {} ended {} us after its wait was over, and nothing had befallen it",
                                      call.label, (in().now() - call.gives_up_at) / 1us));
    }
    if (call.end == call_end::acquired || !is_about_the_server(static_cast<errc>(call.code))) return;
    // Its turn in the process may have come when hardly any time was left to ask.
    if (call.gives_up_at != end_of_time && in().now() + slack > call.gives_up_at) return;
    if (call.timeout < 10 * in().slowest_round_trip(call.process)) return;  // Nobody answers in that time.
    in().complain("C5", fmt::format("call {} ended with error {}, and nothing had befallen it", call.label, call.code));
  }

private:
  static bool is_about_the_server(errc why) {
    if (why == errc{}) return false;  // Busy.
    switch (why) {
      case errc::timed_out:
      case errc::cancelled:
      case errc::cancelled_in_flight:
      case errc::other_size:     // Somebody has resized it.
      case errc::fence_too_far:  // It has asked for that.
      case errc::not_replicated: return false;
      default: return true;  // Also that its answer is none of ours, that it refuses, that it is another kind.
    }
  }
};

}  // namespace

std::unique_ptr<checker> make_reasons(surroundings& in) { return std::make_unique<reasons>(in); }

}  // namespace holdfast::sim
