// SPDX-License-Identifier: Apache-2.0
// client_state's questions: what is asked once and read by the asker.
#include "client/client_state.hpp"
#include "client/quorum.hpp"
#include "client/survey.hpp"
#include "net/clock.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

resp::value client_state::ask(script::command what, engine::question::repeat how) {
  const auto& at = node_->commands();
  engine::question call{at->channel(), std::move(what), how, boottime_now() + options_.timeout};
  at->run(call);
  return reply_of(call);
}

template <class Question>
std::vector<resp::value> client_state::ask_together(std::vector<Question> what) {
  const time_point give_up_at = boottime_now() + options_.timeout;
  std::deque<engine::question> calls;  // They must not move.
  std::vector<engine::call*> all;
  for (auto& one : what) {
    calls.emplace_back(node_->commands()->channel(), std::move(one), engine::question::repeat::allowed, give_up_at);
    all.push_back(&calls.back());
  }
  node_->commands()->run_all(all);
  std::vector<resp::value> replies;
  replies.reserve(calls.size());
  for (const auto& call : calls) replies.push_back(reply_of(call));
  return replies;
}

std::vector<resp::value> client_state::ask_all(std::vector<std::string> encoded) {
  return ask_together(std::move(encoded));
}

std::vector<resp::value> client_state::ask_all(std::vector<script::command> what) {
  return ask_together(std::move(what));
}

resp::value client_state::reply_of(const engine::question& call) const {
  if (call.reply()) return *call.reply();
  error_detail detail;
  detail.server_text = call.server_text();
  detail.attempts = std::max(call.attempts(), node_->commands()->trouble().second);
  detail.elapsed = options_.timeout;
  fail(refined(call.failure()), std::move(detail));
}

void client_state::throw_if_error(const resp::value& reply, std::string subject) const {
  const auto* refused = reply.as_error();
  if (!refused) return;
  error_detail detail;
  detail.subject = std::move(subject);
  detail.server_text = refused->text;
  fail(script::classify(refused->text).code, std::move(detail));
}

std::optional<script::quarantined> client_state::ask_epoch(script::epoch_start start) {
  require_ours();
  const auto hold = hold_of(options_);
  const auto reply = ask(script::epoch(options_.prefix, hold, start), engine::question::repeat::allowed);
  throw_if_error(reply, "key '" + script::epoch_key(options_.prefix) + "'");
  const auto parsed = script::parse_epoch(reply);
  if (!parsed) fail(errc::unexpected_reply, {});
  return parsed->what;
}

void client_state::declare_nothing_forgotten() {
  require_ours();
  if (quorum_) return declare_on_quorum(*this);
  ask_epoch(script::epoch_start::first);
}

std::optional<script::quarantined> client_state::ask_quarantine() {
  if (options_.quarantine != quarantine_mode::on) return std::nullopt;
  return ask_epoch(script::epoch_start::unknown);
}

std::optional<std::chrono::milliseconds> client_state::quarantine() {
  const auto found = node_->commands()->quarantine();
  if (!found) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(found->ends_at - boottime_now());
}

script::command client_state::plan_downgrade(lease_record& record) const {
  require_standing(record);
  if (record.kind != lock_kind::shared) {
    fail_wrong_kind(record.keys, record.kind == lock_kind::semaphore ? "semaphore" : "lock");
  }
  return script::downgrade(record.keys, record.owner, record.grant);
}

void client_state::conclude_downgrade(const lease_record& record, const resp::value& reply) const {
  throw_if_error(reply, "key '" + record.keys.holder + "'");
  const auto parsed = script::parse_release(reply);
  if (!parsed) fail(errc::unexpected_reply, {});
  if (parsed->what == script::release_answer::not_mine) {
    error_detail detail;
    detail.subject = "'" + record.name + "'";
    fail(errc::lease_gone, std::move(detail));
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
