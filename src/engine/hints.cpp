// SPDX-License-Identifier: Apache-2.0
#include "engine/hints.hpp"

#include "resp/writer.hpp"
#include "script/message.hpp"
#include "script/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::engine {

namespace {

channel::settings for_listening(channel::settings s) {
  s.needs_scripts = false;
  s.hears_pushes = true;
  s.epoch = {};    // Nothing is granted over it,
  s.durable = {};  // or renewed.
  return s;
}

// Of what a subscriber is told: {kind, channel, text or count}. Null: it is something else.
const std::string* kind_of(const resp::value& what) {
  const auto* parts = what.as_array();
  return parts && parts->size() == 3 ? (*parts)[0].as_bulk() : nullptr;
}

}  // namespace

hints::hints(channel::settings settings, std::string channel_name, channel& commands, base::random_source& rng,
             hooks tell)
    : name_{std::move(channel_name)},
      tag_{settings.epoch.tag},
      commands_{&commands},
      tell_{std::move(tell)},
      channel_{for_listening(std::move(settings)), rng, *this} {}

void hints::want(time_point now) {
  is_wanted_ = true;
  channel_.set_demand(true);
  if (hearing_ != core::hearing::no || !channel_.is_ready() || now - subscribed_at_ < asked_again_after) return;
  tried_.reset();
  subscribe(now);
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
  tried_.reset();
  subscribe(now);
}

// In its slot, unless that was tried with this number before.
void hints::subscribe(time_point now) {
  const auto tag = tag_ ? std::optional<int>{*tag_} : std::nullopt;
  const bool is_sharded = tag && tag != tried_;
  if (is_sharded) tried_ = tag;
  subscribed_at_ = now;
  channel_name_ = is_sharded ? fmt::format("{}:{{{}}}", name_, *tag) : name_;
  std::string bytes;
  const std::array<std::string_view, 2> words{is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel_name_};
  resp::append_request(bytes, words);
  channel_.send_raw(now, bytes, *this);
}

void hints::on_reply(time_point now, time_point /*sent_at*/, const resp::value& reply) {
  const auto* kind = kind_of(reply);
  subscribed_at_ = now;
  if (kind && (*kind == "subscribe" || *kind == "ssubscribe")) {
    put_off_ = 0;
    return set(now, core::hearing::yes);
  }
  if (is_sharded()) return subscribe(now);
  const auto* error = reply.as_error();
  const auto what = error ? script::classify(error->text) : script::classified{errc{}, script::reaction::give_up};
  // Only the next greeting knows when it has passed.
  if (what.what == script::reaction::try_again && ++put_off_ <= most_put_off) {
    return channel_.hang_up(now, {what.code, error->text, false, false});
  }
  set(now, core::hearing::no);
}

void hints::on_down(time_point now, const connection_failure& failure, bool /*was_ready*/) {
  if (failure.is_final) return set(now, core::hearing::no);
  if (hearing_ == core::hearing::yes) set(now, core::hearing::pending);
}

bool hints::on_push(time_point now, const resp::value& what) {
  const auto* kind = kind_of(what);
  if (!kind) return false;
  if (*kind == "sunsubscribe") {
    if ((*what.as_array())[1] != resp::value{channel_name_}) return true;
    set(now, core::hearing::pending);
    subscribe(now);
    return true;
  }
  if (*kind != "message" && *kind != "smessage") return false;
  const auto* text = (*what.as_array())[2].as_bulk();
  // One that we cannot read is somebody else's, or of a later version: nothing is lost but time.
  const auto said = text ? script::parse_message(*text) : std::nullopt;
  if (said && tell_.on_hint) tell_.on_hint(now, said->owner, said->said_at, said->look_in);
  return true;
}

void hints::set(time_point now, core::hearing what) {
  if (std::exchange(hearing_, what) != what && tell_.on_hearing_changed) tell_.on_hearing_changed(now);
}

}  // namespace holdfast::engine
