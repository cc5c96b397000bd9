// SPDX-License-Identifier: Apache-2.0
#include "engine/epoch_watch.hpp"

#include "script/reply.hpp"

namespace holdfast::engine {

duration by_our_clock(std::chrono::milliseconds remaining) {
  return remaining + remaining / 100 + std::chrono::milliseconds{2};
}

void epoch_watch::begin() {
  *this = epoch_watch{settings_};
  is_first_run_ = settings_.is_first_run && settings_.is_first_run();
}

void epoch_watch::ask(std::string& out, time_point now) {
  const auto start = is_first_run_ ? script::epoch_start::first : script::epoch_start::unknown;
  const auto tag = settings_.tag ? std::optional<int>{*settings_.tag} : std::nullopt;
  asked_as_ = who_asks();
  script::append(out, script::epoch(settings_.prefix, settings_.hold, asked_as_, start, tag), script::call::by_text);
  asked_at_ = now;
  asked_tag_ = tag.value_or(0);
  ++unanswered_;
}

bool epoch_watch::on_answer(time_point now, time_point asked_at, const resp::value& reply) {
  --unanswered_;
  good_from_ = asked_at;
  const auto parsed = script::parse_epoch(reply);
  is_answered_ = parsed.has_value();
  is_good_ = parsed && !parsed->what;
  until_ = time_point{};
  if (!parsed || !parsed->what) return parsed.has_value();
  is_promotion_ = parsed->what->is_promotion;
  began_at_ = now - parsed->what->began_ago;
  until_ = now + by_our_clock(parsed->what->remaining);
  return true;
}

duration epoch_watch::longest_hold(time_point now) const {
  if (is_on() && !is_answered_) return duration::max();
  const auto what = in_force(now);
  return what ? what->ends_at - what->began_at : duration{0};
}

std::optional<quarantine> epoch_watch::in_force(time_point now) const {
  if (!is_on() || now >= until_) return std::nullopt;
  return quarantine{began_at_, until_, is_promotion_};
}

}  // namespace holdfast::engine
