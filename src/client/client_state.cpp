// SPDX-License-Identifier: Apache-2.0
#include "client/client_state.hpp"

#include "client/fork_guard.hpp"
#include "engine/release.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace {

engine::channel::settings channel_settings(const settings& from) {
  engine::channel::settings s;
  s.who = from.server.who;
  s.database = from.server.database;
  s.connect_timeout = std::min<duration>(s.connect_timeout, from.options.timeout);
  return s;
}

// No reference to the state: hooks may be called while it goes away.
engine::caller::hooks hooks_for(const std::shared_ptr<reporter>& to) {
  return {[to] { to->on_up(); }, [to](const engine::connection_failure& f) { to->on_down(f); },
          [to](duration step) { to->on_clock_step(step); }};
}

// The channel on which the line speaks to this client: its name among all that wait.
std::string ear_name(const std::string& prefix) {
  return prefix + "wake:" + std::string{owner_id{net::system_random().bytes16()}.hex()};
}

// Redis may keep a key a moment longer than its ttl by our clock.
constexpr duration after_ttl = std::chrono::seconds{1};

acquire_result result_of(errc code) {
  const std::error_code ec = code;
  if (ec == outcome::timed_out) return acquire_result::timed_out;
  if (code == errc::cancelled || code == errc::cancelled_in_flight) return acquire_result::cancelled;
  return ec == outcome::unknown ? acquire_result::unknown : acquire_result::failed;
}

}  // namespace

client_state::client_state(const settings& from)
    : generation_{process_generation()},
      options_{from.options},
      display_{from.server.display},
      user_{from.server.who.user.empty() ? "default" : from.server.who.user},
      drift_{static_cast<std::int64_t>(std::ceil(from.options.clock_drift * 1e6))},
      callbacks_{std::make_shared<callback_thread>()},
      reporter_{std::make_shared<reporter>(callbacks_, display_, options_.log, options_.observe)},
      commands_{std::make_shared<command_connection>(from.server.where, channel_settings(from), net::system_random(),
                                                     hooks_for(reporter_), ear_name(options_.prefix))},
      keeper_{std::make_shared<keeper_thread>(from.server.where, channel_settings(from), drift_, net::system_random(),
                                              reporter_, commands_)},
      line_{{from.options.hand_overs, from.options.hand_over_span},
            [this](const auto& giver, fencing_token token) { return hand_on(giver, token); }} {
  commands_->on_async_end([callbacks = callbacks_](auto ended) { conclude_all(std::move(ended), *callbacks); });
  commands_->on_lead_for_keeper([keeper = std::weak_ptr{keeper_}] {
    if (const auto k = keeper.lock()) k->wake();
  });
}

client_state::~client_state() {
  keeper_->close(farewell, false);
  callbacks_->close(false);
}

void client_state::close_and_wait() noexcept {
  keeper_->close(farewell, true);
  callbacks_->close(true);
}

const std::string& client_state::owner() {
  std::call_once(owner_is_known_, [this] {
    owner_ = options_.owner.empty() ? default_owner_label() : options_.owner;
    owner_.resize(std::min<std::size_t>(owner_.size(), 256));
  });
  return owner_;
}

void client_state::start(std::shared_ptr<async_call> what) {
  keeper_->stand_by();
  commands_->start(std::move(what));
}

void client_state::cancel_async() noexcept {
  try {
    commands_->cancel_all_async();
  } catch (...) {
    // No memory: they end by themselves, or with the process.
  }
}

bool client_state::is_ours() const noexcept { return generation_ == process_generation(); }

void client_state::require_ours() const {
  if (!is_ours()) throw error{errc::used_after_fork};
}

void client_state::fail(errc code, error_detail detail) const {
  detail.endpoint = display_;
  if (detail.subject.empty() && (code == errc::wrong_password || code == errc::no_permission)) {
    detail.subject = "user '" + user_ + "'";
  }
  throw error{code, std::move(detail)};
}

lock_name client_state::name_of(std::string_view text) const {
  std::error_code ec;
  error_detail detail;
  auto name = lock_name::parse(text, options_.names, ec, &detail.why);
  if (!name) throw error{ec, std::move(detail)};
  // The side keys of plain locks live under our prefix; a plain lock must not be one of them, or of ours.
  if (options_.names == naming::plain && text.starts_with(options_.prefix)) {
    detail.subject = "'" + std::string{text} + "'";
    detail.why = "a plain key must not begin with our own prefix '" + options_.prefix + "'";
    throw error{errc::invalid_name, std::move(detail)};
  }
  return std::move(*name);
}

script::lock_keys client_state::counted_keys_of(std::string_view text) const {
  const lock_name name = name_of(text);
  if (options_.names == naming::plain) {
    error_detail detail;
    detail.subject = "'" + name.text() + "'";
    detail.why = "semaphores and shared locks are not there under plain naming: nobody else knows them";
    throw error{errc::invalid_option, std::move(detail)};
  }
  return script::keys_of(name, options_.prefix, true);
}

void client_state::fail_wrong_kind(const script::lock_keys& keys, const std::string& found) const {
  error_detail detail;
  detail.subject = "key '" + keys.holder + "'";
  detail.why = found == "zset" ? "it is a shared lock or a semaphore (a zset)" : "it is a " + found;
  fail(errc::wrong_kind, std::move(detail));
}

// ---- acquire ----

client_state::planned client_state::plan(std::string_view text, const acquire_options& what, patience how,
                                         const script::part& part) {
  require_ours();
  const lock_name name = name_of(text);
  const bool is_counted = part.mode != script::part{}.mode;
  check(what, options_);
  if (part.mode != 'p') check_no_permits(what);

  core::acquire_settings rules;
  rules.ttl = what.ttl;
  rules.drift = drift_;
  rules.only_once = how == patience::once || what.wait == milliseconds{0};
  if (what.wait && !rules.only_once) rules.wait = *what.wait;
  rules.timeout = options_.timeout;
  rules.had_contact = commands_->had_contact();
  const std::string& label = what.owner.empty() ? owner() : what.owner;
  auto keys = is_counted ? counted_keys_of(text) : keys_of(name);
  return {name.text(), {std::move(keys), label, options_.max_ttl, what.min_fence, rules, part}};
}

lease client_state::acquire_or_throw(std::string_view name, const acquire_options& what, const script::part& part) {
  auto got = acquire(name, what, patience::as_told, part);
  if (got) return std::move(*got);
  error_detail detail;
  detail.subject = "'" + std::string{name} + "'";
  throw error{errc::timed_out, std::move(detail)};
}

std::optional<lease> client_state::acquire(std::string_view text, const acquire_options& what, patience how,
                                           const script::part& part) {
  auto intent = plan(text, what, how, part);
  const time_point started_at = boottime_now();
  if (line_.is_used() && !intent.what.keys.is_counted && !intent.what.settings.only_once) {
    return acquire_in_turn(intent, what, started_at);
  }
  auto& [name, wanted] = intent;
  engine::acquire call{commands_->channel(), commands_->ear(), std::move(wanted), started_at, net::system_random()};
  commands_->run(call, what.cancel);
  auto end = conclude(call, name, what.renew, started_at);
  if (end.code != errc{}) fail(end.code, call, name, started_at);
  return std::move(end.got);
}

namespace {

// Says how it ended to those who wait behind it, also if it ends by an exception.
class asking {
public:
  asking(local_line& line, const std::string& key) : line_{line}, key_{key} {}
  ~asking() {
    if (!is_told_) line_.failed(key_, true);
  }
  asking(const asking&) = delete;
  asking& operator=(const asking&) = delete;

  void got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
           const core::hand_over_wish& wish) {
    line_.got(record, block, granted_at, wish);
    is_told_ = true;
  }
  void failed(errc code) {
    line_.failed(key_, code != errc::timed_out && code != errc::cancelled && code != errc::cancelled_in_flight);
    is_told_ = true;
  }

private:
  local_line& line_;
  const std::string key_;
  bool is_told_ = false;
};

}  // namespace

std::optional<lease> client_state::acquire_in_turn(planned& what, const acquire_options& options,
                                                   time_point started_at) {
  auto& [name, wanted] = what;
  auto& rules = wanted.settings;
  const core::hand_over_wish wish{rules.ttl, wanted.min_fence, options.renew == renewal::automatic};
  const time_point until = rules.wait ? started_at + *rules.wait : never;
  auto turn = line_.enter(wanted.keys.holder, wish, until, options.cancel);
  if (turn.what == local_line::turn::given) {
    report_end(name, acquire_result::acquired, started_at, 0);
    return handle_of(std::move(turn.given));
  }
  if (turn.what != local_line::turn::ask) {
    // Behind a thread that reaches nobody, it is not somebody else's hold that our time went to.
    const auto trouble = commands_->trouble();
    const errc code = turn.what == local_line::turn::cancelled ? errc::cancelled
                      : trouble.second > 0                     ? trouble.first.code
                                                               : errc::timed_out;
    report_end(name, result_of(code), started_at, 0);
    error_detail detail;
    detail.subject = "'" + name + "'";
    detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
    fail(code, std::move(detail));
  }

  asking ours{line_, wanted.keys.holder};
  const time_point now = boottime_now();
  if (rules.wait) rules.wait = std::max(duration{1}, until - now);
  wanted.block_at_once = turn.others_wait ? options_.hand_overs : 0;
  wanted.part.permits = options_.hand_overs;
  engine::acquire call{commands_->channel(), commands_->ear(), std::move(wanted), now, net::system_random()};
  commands_->run(call, options.cancel);
  auto end = conclude(call, name, options.renew, started_at);
  if (end.code != errc{}) {
    ours.failed(end.code);
    fail(end.code, call, name, started_at);
  }
  const auto& record = lease_handle::of(*end.got).record;
  // A copy that may still arrive is cleaned up by its owner id, whoever has the lease then.
  const bool has_copies = record->unsettled_until.not_after != server_time{};
  ours.got(record, has_copies ? 0 : call.reserved(),
           std::get<core::got_lease>(call.end()).deadline - core::usable(record->ttl, drift_), wish);
  return std::move(end.got);
}

lease client_state::handle_of(std::shared_ptr<lease_record> record) {
  return lease{std::make_unique<lease_handle>(shared_from_this(), std::move(record))};
}

std::shared_ptr<lease_record> client_state::hand_on(const std::shared_ptr<lease_record>& giver, fencing_token token) {
  const time_point now = boottime_now();
  const time_point deadline = now + giver->deadline.left(now);
  auto next = std::make_shared<lease_record>(*giver, token, now, deadline);
  if (!keeper_->hand_on(*giver, next, now, deadline, next->mode)) return nullptr;
  giver->deadline.end();
  return next;
}

// What is still in line, or may yet lock or queue, is let go in the background, whatever the call's own end is.
void client_state::settle(engine::acquire& call) {
  const time_point now = boottime_now();
  const auto& keys = call.wanted().keys;
  for (const auto& unsettled : call.take_unsettled()) {
    // While the connection that carried the request stands, a release behind it ends any orphan at once. The keeper
    // makes sure.
    commands_->send_and_forget(script::leave(keys, unsettled.owner));
    // No request may take effect later than that.
    const time_point by = unsettled.not_after == server_time{} ? time_point{} : now + options_.timeout;
    keeper_->release_later({keys,
                            unsettled.owner,
                            {},
                            unsettled.not_after,
                            by,
                            std::max(now, by) + call.wanted().settings.ttl + after_ttl});
  }
}

client_state::concluded client_state::conclude(engine::acquire& call, const std::string& name, renewal mode,
                                               time_point started_at) {
  settle(call);
  concluded end;
  auto result = acquire_result::acquired;
  if (const auto* got = std::get_if<core::got_lease>(&call.end())) {
    auto record = std::make_shared<lease_record>(name, call.wanted().keys, got->owner, got->token,
                                                 call.wanted().settings.ttl, started_at, got->deadline);
    record->mode = mode;
    if (got->was_repeated) record->unsettled_until = {call.last_not_after(), boottime_now() + options_.timeout};
    keeper_->keep(record, boottime_now(), got->deadline, mode, commands_->server_clock());
    end.got = handle_of(std::move(record));
  } else if (const auto* failure = std::get_if<core::got_failure>(&call.end())) {
    end.code = refined(failure->code);
    result = result_of(end.code);
  } else {
    result = acquire_result::busy;
  }
  report_end(name, result, started_at, call.attempts());
  return end;
}

void client_state::fail(errc code, const engine::acquire& call, const std::string& name, time_point started_at) const {
  error_detail detail;
  detail.server_text = call.server_text();
  detail.attempts = std::max(call.attempts(), commands_->trouble().second);
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  if (std::error_code{code} == outcome::unknown) detail.may_remain = options_.timeout + call.wanted().settings.ttl;
  if (std::error_code{code} == outcome::timed_out || code == errc::fence_too_far) detail.subject = "'" + name + "'";
  if (code == errc::wrong_kind) fail_wrong_kind(call.wanted().keys, call.found_kind());
  if (code == errc::other_size) {
    detail.subject = "'" + name + "'";
    detail.why =
        fmt::format("it has {} permits on the server, and you say {}", call.found_size(), call.wanted().part.size);
  }
  fail(code, std::move(detail));
}

void client_state::report_end(const std::string& name, acquire_result result, time_point started_at, int attempts) {
  const auto waited = duration_cast<std::chrono::microseconds>(boottime_now() - started_at);
  reporter_->tell([=](observer& o) { o.on_acquire(name, result, waited, attempts); });
}

// ---- release ----

std::optional<time_point> client_state::let_go(lease_record& record) {
  record.is_let_go = true;
  const time_point now = boottime_now();
  const time_point deadline = now + record.deadline.left(now);
  const bool was_kept = keeper_->let_go(record);
  record.deadline.end();
  if (was_kept && deadline > now) return deadline;
  release_in_background(record);
  return std::nullopt;
}

time_point client_state::give_up_at(time_point deadline) const {
  return std::min(boottime_now() + options_.timeout, deadline);
}

void client_state::conclude(const lease_record& record, release_outcome outcome) {
  if (outcome == release_outcome::unknown) release_in_background(record);
  forget_copies(record);
  line_.ended(record);
  const auto held = duration_cast<std::chrono::microseconds>(boottime_now() - record.granted_at);
  reporter_->tell([=, name = record.name](observer& o) { o.on_released(name, outcome, held); });
}

// To the next thread of this process, without the server.
bool client_state::pass_on(const std::shared_ptr<lease_record>& record) {
  const time_point now = boottime_now();
  const duration left = record->deadline.left(now);
  if (left <= duration{0} || !line_.hand_on(record, now + left)) return false;
  const auto held = duration_cast<std::chrono::microseconds>(now - record->granted_at);
  reporter_->tell([=](observer& o) { o.on_released(record->name, release_outcome::released, held); });
  return true;
}

release_outcome client_state::release(const std::shared_ptr<lease_record>& record) {
  record->is_let_go = true;
  if (pass_on(record)) return release_outcome::released;
  auto outcome = release_outcome::already_lost;
  if (const auto deadline = let_go(*record)) {
    line_.ended(*record);  // Who asks now comes right behind our release.
    engine::release call{commands_->channel(), record->keys, record->owner,
                         record->grant,        *deadline,    give_up_at(*deadline)};
    commands_->run(call);
    outcome = call.end();
  }
  conclude(*record, outcome);
  return outcome;
}

void client_state::drop(const std::shared_ptr<lease_record>& record) noexcept {
  try {
    record->is_let_go = true;
    if (pass_on(record)) return;
    keeper_->let_go(*record);
    record->deadline.end();
    release_in_background(*record);
    forget_copies(*record);
    line_.ended(*record);
  } catch (...) {
    // No memory: the ttl ends it.
  }
}

void client_state::release_in_background(const lease_record& record) {
  keeper_->release_later({record.keys, record.owner, record.grant, {}, {}, boottime_now() + record.ttl + after_ttl});
}

// An unanswered copy of the acquire that led to this lease could lock again after we released (P9).
void client_state::forget_copies(const lease_record& record) {
  const auto& copies = record.unsettled_until;
  if (copies.not_after == server_time{} || boottime_now() >= copies.not_after_local) return;
  keeper_->release_later({record.keys,
                          record.owner,
                          {},
                          copies.not_after,
                          copies.not_after_local,
                          copies.not_after_local + record.ttl + after_ttl});
}

// The deadline of a call may come before the connection's own: then the silence has a better name.
errc client_state::refined(errc code) const {
  const errc trouble = commands_->trouble().first.code;
  return code == errc::server_silent && trouble == errc::tls_failed ? trouble : code;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
