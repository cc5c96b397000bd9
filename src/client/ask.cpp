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

resp::value client_state::ask(const script::lock_keys& about, script::command what, engine::question::repeat how,
                              std::chrono::milliseconds timeout) {
  const auto& at = node_for(about)->commands();
  const began then{boottime_now(), at->so_far().attempts};
  engine::question call{at->channel(), std::move(what), how, then.at + timeout};
  call.set_slot(slot_of(about));
  run(call, about);
  return reply_of(call, *node_for(about), then);
}

std::vector<std::shared_ptr<node>> client_state::servers() const {
  std::optional<error> why_one_is_missing;
  auto found = servers(why_one_is_missing);
  if (why_one_is_missing) throw error{*why_one_is_missing};
  return found;
}

std::vector<std::shared_ptr<node>> client_state::servers(std::optional<error>& why_one_is_missing) const {
  if (!cluster_) return {node_};
  // Whoever is the first to ask about anything learns who there is; the answer itself is of no use, and while a slot is
  // served by nobody there is none.
  const std::chrono::milliseconds brief{300};
  for (const bool is_last : {false, true}) {
    if (cluster_->is_known()) break;
    std::error_code ec;
    const auto keys = script::keys_of(*lock_name::parse("holdfast", naming::holdfast, ec), options_.prefix);
    const began then{boottime_now(), node_->commands()->so_far().attempts};
    engine::question call{node_->commands()->channel(), script::inspect(keys), engine::question::repeat::allowed,
                          then.at + (is_last ? options_.timeout : std::min(brief, options_.timeout))};
    call.set_slot(slot_of(keys));
    run(call, keys);
    if (is_last && !cluster_->is_known()) (void)reply_of(call, *node_for(keys), then);
  }
  std::vector<std::shared_ptr<node>> found;
  std::optional<std::string> too_little;
  for (const auto& one : cluster_->primaries(too_little)) found.push_back(one.at);
  if (too_little || found.empty()) {
    error_detail detail;
    detail.endpoint = display_;
    detail.server_text = too_little.value_or("");
    why_one_is_missing.emplace(too_little ? errc::cannot_connect : errc::no_primary, std::move(detail));
  }
  return found;
}

template <class Question>
std::vector<resp::value> client_state::ask_together(const std::shared_ptr<node>& whom, std::vector<Question> what) {
  const began then{boottime_now(), whom->commands()->so_far().attempts};
  const time_point give_up_at = then.at + options_.timeout;
  std::deque<engine::question> calls;  // They must not move.
  std::vector<engine::call*> all;
  for (auto& one : what) {
    calls.emplace_back(whom->commands()->channel(), std::move(one), engine::question::repeat::allowed, give_up_at);
    all.push_back(&calls.back());
  }
  whom->commands()->run_all(all);
  std::vector<resp::value> replies;
  replies.reserve(calls.size());
  for (const auto& call : calls) replies.push_back(reply_of(call, *whom, then));
  return replies;
}

std::vector<resp::value> client_state::ask_all(const std::shared_ptr<node>& whom, std::vector<std::string> encoded) {
  return ask_together(whom, std::move(encoded));
}

std::vector<resp::value> client_state::ask_all(const std::shared_ptr<node>& whom, std::vector<script::command> what) {
  return ask_together(whom, std::move(what));
}

resp::value client_state::reply_of(const engine::question& call, const script::lock_keys& about) const {
  return reply_of(call, *node_for(about), {boottime_now(), 0});  // Who does not wait hears the code alone.
}

resp::value client_state::reply_of(const engine::question& call, const node& at, const began& then) const {
  if (call.reply()) return *call.reply();
  error_detail detail;
  detail.server_text = call.server_text();
  detail.attempts = call.attempts();
  detail.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(boottime_now() - then.at);
  const errc code = refined(call.failure(), at);
  explain(detail, code, call.failure(), at, then.attempts_before);
  // Which of them: what the client is called by has all.
  if (const auto where = cluster_ ? cluster_->address_of(at) : ""; !where.empty()) {
    if (std::error_code{code} == outcome::unreachable || code == errc::no_password)
      detail.subject = where;
    else if (detail.why.empty() && std::error_code{code} == outcome::denied)
      detail.why = where + " said so";
  }
  fail(code, std::move(detail));
}

void client_state::throw_if_error(const resp::value& reply, std::string subject) const {
  const auto* refused = reply.as_error();
  if (!refused) return;
  error_detail detail;
  detail.subject = std::move(subject);
  detail.server_text = refused->text;
  fail(script::classify(refused->text).code, std::move(detail));
}

std::optional<script::quarantined> client_state::ask_epoch(const std::shared_ptr<node>& one,
                                                           script::epoch_start start) {
  const auto tag = cluster_ ? std::optional<int>{cluster_->epoch_tag_of(*one)} : std::nullopt;
  const auto question = script::epoch(options_.prefix, hold_of(options_), script::asker::onlooker, start, tag);
  const auto reply = ask_all(one, std::vector{question})[0];
  throw_if_error(reply, "key '" + script::epoch_key(options_.prefix, tag) + "'" +
                            (cluster_ ? " of " + cluster_->address_of(*one) : ""));
  const auto parsed = script::parse_epoch(reply);
  if (!parsed) fail(errc::unexpected_reply, {});
  return parsed->what;
}

// epoch.lua goes on where its write is refused, because renewals must; then nobody will have heard of it.
void client_state::declare_nothing_forgotten(const std::shared_ptr<node>& whom) {
  (void)ask_epoch(whom, script::epoch_start::first);
  if (!ask_epoch(whom, script::epoch_start::unknown)) return;
  error_detail detail;
  detail.server_text = (cluster_ ? cluster_->address_of(*whom) : "it") +
                       " does not keep what it is told: its memory is full, or it takes no writes";
  fail(errc::server_refused, std::move(detail));
}

// Of all that can be reached: one that is away must not keep those behind it from what they are told.
void client_state::declare_nothing_forgotten() {
  require_ours();
  if (quorum_) return declare_on_quorum(*this);
  std::optional<error> first;
  for (const auto& one : servers(first)) {
    try {
      declare_nothing_forgotten(one);
    } catch (const error& e) {
      if (!first) first = e;
    }
  }
  if (first) throw error{*first};
}

std::optional<script::quarantined> client_state::ask_quarantine(const std::shared_ptr<node>& whom) {
  if (options_.quarantine != quarantine_mode::on) return std::nullopt;
  return ask_epoch(whom, script::epoch_start::unknown);
}

std::optional<std::chrono::milliseconds> client_state::quarantine(const script::lock_keys& about) const {
  const auto found = node_for(about)->commands()->quarantine();
  if (!found) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(found->ends_at - boottime_now());
}

void client_state::require_shared(lease_record& record) const {
  require_standing(record);
  if (record.kind != lock_kind::shared) {
    fail_wrong_kind(record.keys, record.kind == lock_kind::semaphore ? "semaphore" : "lock");
  }
}

script::command client_state::plan_downgrade(lease_record& record) const {
  require_shared(record);
  return script::downgrade(record.keys, record.owner, record.grant);
}

bool client_state::conclude_downgrade(const lease_record& record, const resp::value& reply) const {
  throw_if_error(reply, "key '" + record.keys.holder + "'");
  const auto parsed = script::parse_release(reply);
  if (!parsed) fail(errc::unexpected_reply, {});
  return parsed->what != script::release_answer::not_mine;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
