// SPDX-License-Identifier: Apache-2.0
// C9: nobody who does not own a lock can release or renew it, and only those scripts grant that are there for it. An
// operator may break it, and that is all.
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::sim {

namespace {

const holder* find(const std::vector<holder>& in, const std::string& owner) {
  const auto found = std::find_if(in.begin(), in.end(), [&](const holder& h) { return h.owner == owner; });
  return found == in.end() ? nullptr : &*found;
}

bool may_grant(script::id which) {
  return which != script::id::renew && which != script::id::renew_counted && which != script::id::inspect;
}

class only_the_owner final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    // What an operator has seen at another primary may be younger than what this one has; any token from that up to the
    // last stamp here will do (break.lua).
    if (is_break(run.which) && in().excuse({cause::another_primary}, instant{}, run.lock)) return;
    check_only_the_owner(run, [this](std::string what) { in().complain("C9", std::move(what)); });
  }
};

}  // namespace

void check_only_the_owner(const script_run& run, const complaint& complain) {
  const auto say = [&](const std::string& whose, const char* what) {
    complain(fmt::format("lock {}: {} by process {} for {:.8} {} {:.8}", run.lock, script::find(run.which).name,
                         run.process, run.owner(), what, whose));
  };
  for (const auto& was : run.before) {
    if (was.owner == run.owner()) continue;
    const auto* is = find(run.after, was.owner);
    const bool is_meant = is_break(run.which) && was.token == run.args[0];
    if (!is && !is_meant && was.expires_at > run.at.time_since_epoch()) say(was.owner, "ended the lease of");
    if (is && is->expires_at > was.expires_at) say(was.owner, "renewed the lease of");
  }
  if (may_grant(run.which)) return;
  for (const auto& is : run.after) {
    if (!find(run.before, is.owner)) say(is.owner, "granted anew to");
  }
}

std::unique_ptr<checker> make_only_the_owner(surroundings& in) { return std::make_unique<only_the_owner>(in); }

}  // namespace holdfast::sim
