// SPDX-License-Identifier: Apache-2.0
#include "engine/hints.hpp"

#include "resp/writer.hpp"
#include "script/message.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::engine {

namespace {

channel::settings for_listening(channel::settings s) {
  s.loads_scripts = false;
  s.hears_pushes = true;
  s.epoch = {};    // Nothing is granted over it,
  s.durable = {};  // or renewed.
  return s;
}

}  // namespace

hints::hints(channel::settings settings, std::string channel_name, channel& commands, base::random_source& rng,
             hooks tell)
    : name_{std::move(channel_name)},
      commands_{&commands},
      tell_{std::move(tell)},
      channel_{for_listening(std::move(settings)), rng, *this} {}

void hints::want() {
  is_wanted_ = true;
  channel_.set_demand(true);
}

void hints::doubt(time_point now) {
  // Not twice for one cut: whoever else missed a turn by it comes after us.
  if (hearing_ != core::hearing::yes || now - subscribed_at_ < std::chrono::seconds{5}) return;
  channel_.hang_up(now, {errc::connection_lost, "a turn was missed", false, false});
}

void hints::compare(time_point now) {
  if (!channel_.is_ready() || !commands_->is_ready()) return;
  const auto& here = channel_.run_id();
  const auto& there = commands_->run_id();
  if (here.empty() || there.empty() || here == there) return;
  const connection_failure why{errc::connection_lost, "two connections reached two servers", false, false};
  channel_.hang_up(now, why);
  commands_->hang_up(now, why);
}

void hints::on_ready(time_point now) {
  compare(now);
  if (!channel_.is_ready()) return;
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 2>{"SUBSCRIBE", name_});
  channel_.send_raw(now, bytes, *this);
}

void hints::on_reply(time_point now, time_point /*sent_at*/, const resp::value& reply) {
  const auto* parts = reply.as_array();
  const auto* kind = parts && parts->size() == 3 ? (*parts)[0].as_bulk() : nullptr;
  subscribed_at_ = now;
  set(now, kind && *kind == "subscribe" ? core::hearing::yes : core::hearing::no);
}

void hints::on_down(time_point now, const connection_failure& failure, bool /*was_ready*/) {
  if (failure.is_final) return set(now, core::hearing::no);
  if (hearing_ == core::hearing::yes) set(now, core::hearing::pending);
}

bool hints::on_push(time_point now, const resp::value& what) {
  const auto* parts = what.as_array();
  const auto* kind = parts && parts->size() == 3 ? (*parts)[0].as_bulk() : nullptr;
  if (!kind || *kind != "message") return false;
  const auto* text = (*parts)[2].as_bulk();
  // One that we cannot read is somebody else's, or of a later version: nothing is lost but time.
  const auto said = text ? script::parse_message(*text) : std::nullopt;
  if (said && tell_.on_hint) tell_.on_hint(now, said->owner, said->said_at, said->look_in);
  return true;
}

void hints::set(time_point now, core::hearing what) {
  if (std::exchange(hearing_, what) != what && tell_.on_hearing_changed) tell_.on_hearing_changed(now);
}

}  // namespace holdfast::engine
