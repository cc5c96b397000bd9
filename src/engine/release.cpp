// SPDX-License-Identifier: Apache-2.0
#include "engine/release.hpp"

#include "script/command.hpp"
#include "script/reply.hpp"

#include <utility>

namespace holdfast::engine {

release::release(channel& to, script::lock_keys keys, owner_id owner, fencing_token token, time_point lease_deadline,
                 time_point give_up_at)
    : call{to}, keys_{std::move(keys)}, owner_{owner}, token_{token}, flow_{lease_deadline, give_up_at} {}

void release::step(time_point now) {
  if (flow_.on_wake(now, to().takes_back())) to().send(now, script::release(keys_, owner_, token_), *this);
}

void release::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  if (const auto* error = reply.as_error()) {
    const auto what = judge_error(now, *error);
    // NOREPLICAS and MISCONF block releases too (H31): the lease stays until its ttl; the background goes on.
    script::ends_a_call(what.what) ? flow_.on_hopeless() : flow_.on_not_done(now);
  } else if (const auto parsed = script::parse_release(reply)) {
    to().observe_clock(parsed->now, sent_at, now);
    parsed->what == script::release_answer::released ? flow_.on_released() : flow_.on_not_mine(sent_at);
  } else {
    flow_.on_hopeless();
  }
  tell_news();
}

void release::on_cut(time_point now) {
  note(to().last_failure().text);
  flow_.on_cut();
  step(now);
  tell_news();
}

void release::on_no_connection(time_point /*now*/, const connection_failure& failure) {
  note(failure.text);
  if (failure.is_final) flow_.on_hopeless();
}

}  // namespace holdfast::engine
