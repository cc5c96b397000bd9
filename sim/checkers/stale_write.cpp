// SPDX-License-Identifier: Apache-2.0
// C3: no stale write of an exclusive holder reaches a resource that is guarded by the fencing protocol. The store of
// the world says when it took one (sim/guarded_store.hpp).
//
// It rests on each token being granted once, so it ends where C2 ends: a server that loses its data while its clock
// stands still, or has gone back to the very microsecond, grants the same token again.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace holdfast::sim {

namespace {

class stale_write final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    for (const auto& h : run.after) owners_[{run.lock, h.token}].insert(h.owner);
  }
  // Also who was handed it on in its process.
  void on_hold(const hold& one) override { owners_[{one.lock, fmt::format("{:016}", one.token)}].insert(one.owner); }
  void on_stale_write(int lock, std::uint64_t token) override {
    const auto found = owners_.find({lock, fmt::format("{:016}", token)});
    const bool was_granted_twice = found != owners_.end() && found->second.size() > 1;
    const bool is_excused = in().excuse({cause::clock_stepped, cause::clock_rate}, {}, lock) != nullptr &&
                            in().excuse({cause::data_lost}, {}, lock) != nullptr;
    if (was_granted_twice && is_excused) return in().attribute(cause::clock_stepped);
    in().complain("C3", fmt::format("lock {}: an update was overwritten with token {}", lock, token));
  }

private:
  std::map<std::pair<int, std::string>, std::set<std::string>> owners_;
};

}  // namespace

std::unique_ptr<checker> make_stale_write(surroundings& in) { return std::make_unique<stale_write>(in); }

}  // namespace holdfast::sim
