// SPDX-License-Identifier: Apache-2.0
// Whoever renews by hand (renewal::none) ties his lease to the progress of his work: it goes on for no longer than he
// has asked for (docs/decisions/0010).
#include "checkers/checker.hpp"

#include <fmt/format.h>

namespace holdfast::sim {

namespace {

class by_hand final : public checker {
public:
  using checker::checker;

  void on_extended(const hold& one) override {
    if (!one.is_by_hand || one.valid_until <= one.may_last_until) return;
    in().complain(
        "hand", fmt::format("process {}, lock {}, token {}: goes on for {} us, and nobody has renewed it", one.process,
                            one.lock, one.token, (one.valid_until - one.may_last_until).count() / 1000));
  }
};

}  // namespace

std::unique_ptr<checker> make_by_hand(surroundings& in) { return std::make_unique<by_hand>(in); }

}  // namespace holdfast::sim
