// SPDX-License-Identifier: Apache-2.0
// A hold that somebody broke "at its expiry" is renewed no more: it ends with what it had left then, or at its claim if
// that was still to come (break.lua).
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace holdfast::sim {

namespace {

class broken final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    if (run.which == script::id::renew || run.which == script::id::renew_counted) judge(run);
    note_break(run);
  }

private:
  void judge(const script_run& run) {
    for (const auto& was : run.before) {
      const auto since = broken_.find({run.lock, was.owner, was.token});
      if (since == broken_.end()) continue;
      const auto is =
          std::find_if(run.after.begin(), run.after.end(), [&](const auto& h) { return h.owner == was.owner; });
      if (is == run.after.end() || is->expires_at <= was.expires_at) continue;
      // Then nothing of the break need be left.
      if (in().excuse({cause::keys_deleted, cause::data_lost, cause::another_primary}, since->second, run.lock)) {
        continue;
      }
      in().complain("break", fmt::format("lock {}: process {} has renewed {:.8}, which was broken", run.lock,
                                         run.process, was.owner));
    }
  }

  void note_break(const script_run& run) {
    const holder* whose = broken_by(run);
    if (whose && run.args[1] == "expiry") broken_.try_emplace({run.lock, whose->owner, whose->token}, in().now());
  }

  // Lock, owner id and token: whose grant was broken in its window comes again with its id, and gets another. Since
  // when.
  std::map<std::tuple<int, std::string, std::string>, instant> broken_;
};

bool is_done(const resp::value& reply) {
  if (reply.as_bulk()) return true;
  const auto* all = reply.as_array();
  return all && !all->empty() && all->front().as_integer() && *all->front().as_integer() == 18;  // It goes on.
}

}  // namespace

bool is_break(script::id which) { return which == script::id::break_lock || which == script::id::break_counted; }

// An operator names the token of the grant, and no later one of its block.
const holder* broken_by(const script_run& run) {
  if (!is_break(run.which) || run.args.size() < 2 || !is_done(*run.reply)) return nullptr;
  const auto whose =
      std::find_if(run.before.begin(), run.before.end(), [&](const holder& h) { return h.token == run.args[0]; });
  return whose == run.before.end() ? nullptr : &*whose;
}

std::unique_ptr<checker> make_broken(surroundings& in) { return std::make_unique<broken>(in); }

}  // namespace holdfast::sim
