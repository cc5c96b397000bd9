// SPDX-License-Identifier: Apache-2.0
// C8: no key of ours exists without an expiry. Those of a lock are looked at after every script about it, so that a
// crash right behind it leaves nothing for ever; at rest all that there are, also what is kept of no lock (epoch.lua).
#include "checkers/checker.hpp"

#include <fmt/format.h>

namespace holdfast::sim {

namespace {

class expiry final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    for (const auto& key : run.keys) {
      const auto* found = in().redis(run.lock).peek(key);
      if (found && !found->expires_at) in().complain("C8", fmt::format("{} has no expiry", key));
    }
  }
  void at_rest() override {
    for (const auto* server : in().all_servers()) {
      for (const auto& [key, entry] : server->all()) {
        if (!entry.expires_at) in().complain("C8", fmt::format("{} has no expiry, and nobody is there", key));
      }
    }
  }
};

}  // namespace

std::unique_ptr<checker> make_expiry(surroundings& in) { return std::make_unique<expiry>(in); }

}  // namespace holdfast::sim
