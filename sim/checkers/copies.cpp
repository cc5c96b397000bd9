// SPDX-License-Identifier: Apache-2.0
// E8: with durability.replicas, so many replicas have a lease when its holder hears of it, and have it for as long as
// it is valid, also when it was renewed. What befalls the primary's data or clock meanwhile befalls the copies, too.
#include "checkers/checker.hpp"

#include <fmt/format.h>

namespace holdfast::sim {

namespace {

class copies final : public checker {
public:
  using checker::checker;

  void on_hold(const hold& one) override { judge(one); }
  void on_extended(const hold& one) override { judge(one); }

private:
  void judge(const hold& one) {
    const int missing = in().missing_copies(one);
    if (missing <= 0 || one.valid_until <= in().now()) return;
    if (in().excuse(
            {cause::clock_stepped, cause::clock_rate, cause::data_lost, cause::keys_deleted, cause::broken_at_once},
            one.counted_from, one.lock)) {
      return;
    }
    in().complain("copies", fmt::format("lock {}: process {} is told that token {} is its own, and {} of its replicas "
                                        "have not got it for so long",
                                        one.lock, one.process, one.token, missing));
  }
};

}  // namespace

std::unique_ptr<checker> make_copies(surroundings& in) { return std::make_unique<copies>(in); }

}  // namespace holdfast::sim
