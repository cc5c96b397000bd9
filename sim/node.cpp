// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include "resp/writer.hpp"
#include "script/source.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast::sim {

namespace {

// The first words of a call, as they are written: a greeting has digests, too. A search for them stops at each `$`
// only, which is rare also in the texts of scripts.
std::string call_of(script::id which) {
  std::string word;
  resp::append_word(word, "EVALSHA");
  resp::append_word(word, script::find(which).sha1);
  return word;
}

}  // namespace

bool has_renewal(std::string_view requests) {
  static const std::array words{call_of(script::id::renew), call_of(script::id::renew_counted)};
  return std::any_of(words.begin(), words.end(),
                     [&](const auto& word) { return requests.find(word) != requests.npos; });
}

node::node(const settings& what, base::random_source& rng, engine::keeper_listener& listener, hooks tell)
    : caller{what.commands,
             rng,
             {[this](time_point at) { ear.compare(at); },
              [this](const engine::connection_failure&) { tell_.on_down(); },
              [this](duration step, const core::server_clock& seen) { keeper.on_step_seen(tell_.now(), step, seen); },
              [this](std::string_view owner, server_time said_at) {
                if (tell_.is_planted(canary_switch::ignores_stray_hints)) return;
                keeper.on_stray_hint(tell_.now(), owner, said_at);
              }}},
      ear{what.commands,
          what.ear,
          caller.wire(),
          rng,
          {[this](time_point at, std::string_view owner, server_time said_at, duration look_in) {
             if (tell_.is_planted(canary_switch::message_is_grant) && look_in > duration{0}) {
               tell_.on_believed(at, owner, said_at);
             }
             caller.on_hint(at, owner, said_at, look_in);
           },
           [this](time_point at) { caller.on_hearing_changed(at); }}},
      keeper{what.keeper, rho, rng, listener},
      unattended{caller},
      commands{&caller.wire()},
      listening{&ear.wire()},
      keeping{&keeper.wire()},
      tell_{std::move(tell)},
      server_{what.server},
      named_{what.named},
      epoch_tag_{what.epoch_tag} {}

time_point node::wake_at() const {
  const time_point soonest = std::min({keeper.wake_at(), commands.channel->wake_at(), unattended.wake_at()});
  return ear.is_wanted() ? std::min(soonest, listening.channel->wake_at()) : soonest;
}

}  // namespace holdfast::sim
