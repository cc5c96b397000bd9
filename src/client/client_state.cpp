// SPDX-License-Identifier: Apache-2.0
#include "client/client_state.hpp"

#include "client/fork_guard.hpp"
#include "client/owner_label.hpp"
#include "client/quorum.hpp"
#include "local/starts.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"
#include "script/slot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

// A lease of the longest ttl is worth this much; and so is being named the primary (engine/named_primary.hpp).
std::shared_ptr<net::sentinel_watch> watch_for(const settings& from, core::clock_drift drift) {
  if (!from.server.sentinels) return nullptr;
  return std::make_shared<net::sentinel_watch>(*from.server.sentinels, core::usable(from.options.max_ttl, drift),
                                               drift);
}

net::endpoint endpoint_for(const settings& from, const std::shared_ptr<net::sentinel_watch>& sentinels) {
  auto where = from.server.where;
  if (sentinels) where.where = sentinels;
  return where;
}

using wish_flag = std::shared_ptr<const std::atomic<bool>>;  // wants_locks of engine::epoch_watch::settings.

engine::channel::settings channel_settings(const settings& from, const std::shared_ptr<net::sentinel_watch>& sentinels,
                                           const wish_flag& wants_locks) {
  engine::channel::settings s;
  if (sentinels) s.primary = sentinels->primary();
  s.who = from.server.who;
  s.database = from.server.database;
  // Of a short timeout, too, there is some left for another address when one is silent.
  const duration timeout = from.options.timeout;
  s.connect_timeout =
      std::min({s.connect_timeout, timeout, std::max<duration>(std::chrono::milliseconds{500}, timeout * 2 / 5)});
  s.durable = from.options.durability;
  if (from.options.quarantine != quarantine_mode::on) return s;
  s.epoch.prefix = from.options.prefix;
  s.epoch.hold = hold_of(from.options);
  s.epoch.wants_locks = wants_locks;
  if (from.server.is_local) {
    s.epoch.is_first_run = [directory = from.server.local_directory] { return local::is_first_run(directory); };
  }
  return s;
}

// What it holds must be renewed, whatever the server thinks of INFO by then.
engine::channel::settings keeper_settings(const settings& from, const std::shared_ptr<net::sentinel_watch>& sentinels,
                                          const wish_flag& wants_locks) {
  auto s = channel_settings(from, sentinels, wants_locks);
  s.epoch.may_be_unknown = true;
  return s;
}

// The channel on which the line speaks to this client: its name among all that wait.
std::string ear_name(const std::string& prefix) {
  return prefix + "wake:" + std::string{owner_id{net::system_random().bytes16()}.hex()};
}

// The nodes of a cluster differ in who they are; for the line all of them have one name, and each its own slot behind
// it (engine/hints.hpp).
std::shared_ptr<cluster_nodes> nodes_for(const settings& from, core::clock_drift drift, const wish_flag& wants_locks,
                                         const std::shared_ptr<reporter>& tell,
                                         const std::function<void(command_connection::ended_calls)>& conclude) {
  if (!from.server.cluster) return nullptr;
  const auto make = [commands = channel_settings(from, nullptr, wants_locks),
                     keeper = keeper_settings(from, nullptr, wants_locks), drift, tell, conclude,
                     ear = ear_name(from.options.prefix)](net::endpoint where, const cluster_nodes::role& as) {
    node_settings one{std::move(where), commands, keeper, drift, ear};
    for (auto* s : {&one.commands, &one.keeper}) {
      s->node_id = as.id;
      s->primary = as.named;
      s->epoch.tag = as.epoch_tag;
      s->redirected = as.redirected;
    }
    return std::make_shared<node>(one, net::system_random(), tell, tell, conclude);
  };
  return cluster_nodes::make(*from.server.cluster, core::usable(from.options.max_ttl, drift), drift, make);
}

std::shared_ptr<node> node_of(const settings& from, core::clock_drift drift,
                              const std::shared_ptr<net::sentinel_watch>& sentinels,
                              const std::shared_ptr<cluster_nodes>& cluster, const wish_flag& wants_locks,
                              const std::shared_ptr<reporter>& tell,
                              const std::function<void(command_connection::ended_calls)>& conclude,
                              const std::shared_ptr<local_restart>& restart) {
  if (cluster) return cluster->lobby();
  node_settings one{endpoint_for(from, sentinels), channel_settings(from, sentinels, wants_locks),
                    keeper_settings(from, sentinels, wants_locks), drift, ear_name(from.options.prefix)};
  if (restart) one.on_refused = [restart] { restart->on_refused(); };
  auto of_keeper = tell;
  if (from.has_quiet_keeper) {
    of_keeper = std::make_shared<reporter>(tell->callbacks().shared_from_this(), tell->endpoint(), nullptr, nullptr);
  }
  return std::make_shared<node>(one, net::system_random(), tell, of_keeper, conclude);
}

}  // namespace

client_state::client_state(const settings& from)
    : generation_{process_generation()},
      options_{from.options},
      has_alternative_{from.has_alternative},
      is_quorum_member_{from.is_quorum_member},
      display_{from.server.display},
      user_{from.server.who.user.empty() ? "default" : from.server.who.user},
      database_{from.server.database},
      drift_{static_cast<std::int64_t>(std::ceil(from.options.clock_drift * 1e6))},
      callbacks_{std::make_shared<callback_thread>()},
      reporter_{std::make_shared<reporter>(callbacks_, display_, options_.log, options_.observe)},
      sentinels_{watch_for(from, drift_)},
      conclude_{[callbacks = callbacks_](auto ended) { conclude_all(std::move(ended), *callbacks); }},
      cluster_{nodes_for(from, drift_, wants_locks_, reporter_, conclude_)},
      restart_{from.server.is_local ? std::make_shared<local_restart>(from.server.local_directory, reporter_)
                                    : nullptr},
      node_{node_of(from, drift_, sentinels_, cluster_, wants_locks_, reporter_, conclude_, restart_)},
      quorum_{from.server.quorum.empty()
                  ? nullptr
                  : std::make_unique<quorum>(from, channel_settings(from, nullptr, wants_locks_),
                                             keeper_settings(from, nullptr, wants_locks_), drift_, reporter_)},
      // Tokens that no replica has could be granted again behind a failover.
      line_{{from.options.hand_overs, from.options.hand_over_span, from.options.durability.replicas == 0},
            from.options.timeout,
            [this](const auto& giver, fencing_token token) { return hand_on(giver, token); },
            [this](const auto& giver, const auto& what) { ask_for_more(giver, what); }} {
  if (!sentinels_) return;
  sentinels_->on_change([at = std::weak_ptr{node_}] {
    if (const auto n = at.lock()) n->look_around();
  });
}

std::shared_ptr<client_state> client_state::make(const settings& from) try {
  return std::make_shared<client_state>(from);
} catch (const error&) {
  throw;
} catch (const std::system_error& e) {  // Too few descriptors, say.
  error_detail detail;
  detail.endpoint = from.server.display;
  detail.server_text = e.what();
  throw error{errc::cannot_connect, std::move(detail)};
}

client_state::~client_state() {
  const net::uncancelled until_done;
  if (sentinels_) sentinels_->close(false);
  if (quorum_) quorum_->close(farewell, false);
  if (cluster_) cluster_->close(farewell, false);
  node_->close(farewell, false);
  if (restart_) restart_->close(time_point{});
  callbacks_->close(false);
}

void client_state::close_and_wait() noexcept {
  const net::uncancelled until_done;
  const time_point until = net::boottime_now() + farewell;
  if (quorum_) quorum_->close(farewell, true);
  if (cluster_) cluster_->close(farewell, true);
  node_->close(farewell, true);
  if (restart_) restart_->close(until);
  callbacks_->close(true);
  if (sentinels_) sentinels_->close(true);
}

const std::shared_ptr<const std::string>& client_state::owner() {
  std::call_once(owner_is_known_, [this] {
    auto label = options_.owner.empty() ? default_owner_label() : options_.owner;
    label.resize(std::min<std::size_t>(label.size(), 256));
    owner_ = std::make_shared<const std::string>(std::move(label));
  });
  return owner_;
}

void client_state::cancel_async() noexcept {
  try {
    is_ending_ = true;
    if (quorum_) quorum_->cancel_errands();
    for (const auto& one : cluster_ ? cluster_->all() : std::vector{node_}) one->commands()->cancel_all_async();
  } catch (...) {
    // No memory: they end by themselves, or with the process.
  }
}

bool client_state::is_ours() const noexcept { return generation_ == process_generation(); }

void client_state::require_ours() const {
  if (!is_ours()) throw error{errc::used_after_fork};
}

std::string quarantine_sentence(bool is_promotion, duration began_ago, duration remaining) {
  const auto seconds = [](duration d) { return std::chrono::ceil<std::chrono::seconds>(d).count(); };
  return fmt::format("the server {} {} s ago and may have forgotten locks: nothing is granted for {} s more",
                     is_promotion ? "restarted or was promoted" : "started", seconds(began_ago), seconds(remaining));
}

std::string client_state::why_nothing_is_granted(const node& by) const {
  const auto found = by.commands()->quarantine();
  if (!found) return "the server restarted or was promoted and may have forgotten locks";
  const time_point now = net::boottime_now();
  return quarantine_sentence(found->is_promotion, now - found->began_at, found->ends_at - now);
}

// Sentinels know another user than the primary does. In their words each of them is named, the first one first.
bool client_state::is_of_sentinels(const std::string& words) const {
  return sentinels_ && words.starts_with(net::text_of(sentinels_->whom().sentinels.front()) + ": ");
}

void client_state::fail(errc code, error_detail detail) const {
  detail.endpoint = display_;
  if (code == errc::quarantined && detail.why.empty()) detail.why = why_nothing_is_granted(*node_);
  if (detail.subject.empty() && (code == errc::wrong_password || code == errc::no_permission)) {
    const auto& theirs = is_of_sentinels(detail.server_text) ? sentinels_->whom().who.user : user_;
    detail.subject = "user '" + (theirs.empty() ? "default" : theirs) + "'";
  }
  if (code == errc::wrong_database && detail.subject.empty()) detail.subject = std::to_string(database_);
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

// Not kept beside its keys by those who wait by the thousand.
std::string client_state::name_of(const script::lock_keys& keys) const {
  if (options_.names == naming::plain) return keys.holder;
  return *script::name_of_holder_key(keys.holder, options_.prefix);
}

script::lock_keys client_state::counted_keys_of(const lock_name& name) const {
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
  // The server does not say which of them.
  const bool is_foreign =
      found == "list" || found == "set" || found == "hash" || found == "stream" || found == "sorted set";
  if (is_foreign) detail.why += ", or a key beside it is";
  fail(errc::wrong_kind, std::move(detail));
}

int client_state::slot_of(const script::lock_keys& keys) const {
  return cluster_ ? script::slot_of(keys.holder) : engine::call::no_slot;
}

void client_state::run(engine::acquire& call, const std::stop_token& cancel) const {
  do {
    const auto& at = node_for(call.wanted().keys)->commands();
    if (cluster_) call.go_on(at->channel(), at->ear(), net::boottime_now());
    at->run(call, cancel);
  } while (call.is_moved());
}

void client_state::run(engine::call& call, const script::lock_keys& keys,
                       const std::function<void()>& when_asked) const {
  bool is_asked = false;
  do {
    const auto& at = node_for(keys)->commands();
    if (cluster_) call.go_on(at->channel(), at->ear(), net::boottime_now());
    std::exchange(is_asked, true) ? at->run(call) : at->run(call, when_asked);
  } while (call.is_moved());
}

// The deadline of a call may come before the connection's own, or while none is tried to be made, so that nobody was
// asked: then the silence has a better name. Not one that leaves open whether something was done: that is of the
// connection before, over which nothing of this call went.
errc client_state::refined(errc code, const node& at) {
  if (code != errc::server_silent) return code;
  const auto [why, attempts] = at.commands()->trouble();
  const bool is_better = attempts > 0 && std::error_code{why.code} != outcome::unknown;
  return is_better ? why.code : code;
}

void client_state::explain(error_detail& detail, errc code, errc heard, const node& at, int attempts_before) {
  const auto [why, attempts] = at.commands()->trouble();
  if (code != heard && code == why.code) detail.server_text = why.text;
  // What became of the request nobody knows; what keeps everybody from asking again is known. A primary was demoted,
  // say.
  if (code == errc::reply_lost && code == heard && why.is_final && detail.why.empty())
    detail.why = fmt::format("{}: {}", std::error_code{why.code}.message(), why.text);
  // Was it at least there?
  if (code == errc::server_silent && attempts > 0 && detail.server_text.empty()) detail.server_text = why.text;
  // A connection that was there meanwhile began the count again.
  detail.attempts = std::max(detail.attempts, attempts < attempts_before ? attempts : attempts - attempts_before);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
