// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_break.hpp"

#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

quorum_break::quorum_break(event_queue& events, std::deque<model_server>& servers, const settings& what,
                           seeded_random rng, told tell)
    : events_{&events}, servers_{&servers}, what_{what}, rng_{rng}, tell_{std::move(tell)}, count_{what.nodes.size()} {
  for (std::size_t i = 0; i < what.nodes.size(); ++i) is_cut_off_.push_back(rng_.chance(10));
  events_->after(rng_.any_size(50us, std::max<duration>(1ms, what_.ttl)), [this] { begin(); });
}

duration quorum_break::way() {
  return rng_.chance(90) ? rng_.any_size(50us, 50ms) : rng_.any_size(1ms, std::max<duration>(2ms, what_.ttl));
}

bool quorum_break::answers(std::size_t node) const {
  auto& server = at(node);
  return !is_cut_off_[node] && server.is_up() && server.stuck_until() <= events_->now();
}

quorum_break::survey quorum_break::look() {
  survey seen;
  for (std::size_t i = 0; i < what_.nodes.size(); ++i) {
    if (!answers(i)) {
      ++seen.silent;
      continue;
    }
    auto& server = at(i);
    server.now();
    for (auto& one : holders_of(server.redis(), what_.of)) seen.by_owner[one.owner].push_back({i, std::move(one)});
  }
  return seen;
}

// On each server that has it, under the token that it has there.
void quorum_break::begin() {
  auto now = look();
  if (!is_majority(what_.nodes.size() - now.silent)) return tell_(end::not_known);
  auto& votes = now.by_owner[what_.owner];
  const auto has_it = [this](const vote& one) { return one.seen.token == what_.token; };
  if (std::none_of(votes.begin(), votes.end(), has_it)) return tell_(end::not_broken);
  count_.add_silent(now.silent);
  votes_ = std::move(votes);
  break_next();
}

void quorum_break::break_next() {
  if (next_ == votes_.size()) return tell_(count_.so_far());
  events_->after(way(), [this] {
    count_.add(ask_to_break(votes_[next_++]));
    break_next();
  });
}

std::error_code quorum_break::ask_to_break(const vote& one) {
  auto& server = at(one.node);
  if (is_cut_off_[one.node] || !server.is_up()) return errc::cannot_connect;
  if (const auto until = server.stuck_until(); until > events_->now()) {
    // Its answer is not waited for, and may be one.
    if (rng_.chance(50)) {
      events_->at(until, [this, one, &server] {
        if (server.is_up()) server.break_lock(what_.of, one.seen, what_.at_once);
      });
    }
    return errc::reply_lost;
  }
  const auto reply = server.break_lock(what_.of, one.seen, what_.at_once);
  if (rng_.chance(3)) return errc::reply_lost;
  if (const auto* error = reply.as_error()) return script::classify(error->text).code;
  const auto said = script::parse_break(reply);
  if (!said) return errc::unexpected_reply;
  switch (said->what) {
    case script::break_answer::broken: return {};
    case script::break_answer::not_held: return errc::not_held;
    case script::break_answer::changed_hands: return errc::changed_hands;
    case script::break_answer::foreign: return errc::wrong_kind;
  }
  return errc::unexpected_reply;
}

}  // namespace holdfast::sim
