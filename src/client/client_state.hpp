// SPDX-License-Identifier: Apache-2.0
// What stands behind a holdfast::client and every lease it gave: its server, or servers, and the callbacks.
#pragma once

#include "client/callback_thread.hpp"
#include "client/cluster_nodes.hpp"
#include "client/local_line.hpp"
#include "client/local_restart.hpp"
#include "client/node.hpp"
#include "client/reporter.hpp"
#include "client/settings.hpp"
#include "engine/question.hpp"
#include "script/reply.hpp"

#include <holdfast/client.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class quorum;
struct quorum_wish;
struct last_votes;

// What the end of an acquire is to an observer.
acquire_result result_of(errc code);

// What several have come to that were released as one: the worst that is known.
inline release_outcome worse(release_outcome before, release_outcome next) {
  return next == release_outcome::unknown || before == release_outcome::released ? next : before;
}

// Why nothing is granted, for people. `is_promotion`: or a restart of a primary that ever had a replica (epoch.lua).
std::string quarantine_sentence(bool is_promotion, duration began_ago, duration remaining);

class client_state : public std::enable_shared_from_this<client_state> {
public:
  // Where it cannot be made for want of something of the system's, descriptors say, that is errc::cannot_connect.
  static std::shared_ptr<client_state> make(const settings& from);
  explicit client_state(const settings& from);
  // The last handle is gone: ends the threads without waiting for them.
  ~client_state();
  static client_state& of(client& handle) { return *handle.state_; }
  client_state(const client_state&) = delete;
  client_state& operator=(const client_state&) = delete;

  // Redis may keep a key a moment longer than its ttl by our clock.
  static constexpr duration after_ttl = std::chrono::seconds{1};
  // A place in line that was given up is asked to go for so long, if nobody answers: it does not end with a ttl, but
  // with its line, a minute after anybody looked. Where others still do, who waits behind it has it called (place.lua).
  static constexpr duration place_lasts = std::chrono::minutes{1};
  // How long a process that ends waits for its background releases (H48).
  static constexpr std::chrono::milliseconds farewell{200};
  // The client is gone and no lease is left: as the destructor, but waits, at most `farewell`.
  void close_and_wait() noexcept;

  const client_options& options() const { return options_; }
  const std::string& endpoint() const { return display_; }
  // Null: one server is behind it.
  quorum* of_quorum() const { return quorum_.get(); }
  bool has_sentinels() const { return sentinels_ != nullptr; }
  bool is_quorum_member() const { return is_quorum_member_; }  // As of settings.
  const net::sentinel_set& sentinels() const { return sentinels_->whom(); }
  bool is_ending() const { return is_ending_; }
  // options().owner, or user@host:pid program, which costs a look-up of the user and so is made when first needed.
  const std::shared_ptr<const std::string>& owner();
  // The server that serves these keys, now: where calls about them run, and where leases of them are kept at first.
  const std::shared_ptr<node>& node_for(const script::lock_keys& keys) const {
    return cluster_ ? cluster_->node_for(keys.holder) : node_;
  }
  // The server that keeps a lease of ours, for as long as one holds moving().
  const std::shared_ptr<node>& keeper_of(const lease_record& record) const {
    return record.kept_at ? *record.kept_at : node_;
  }
  std::unique_lock<std::mutex> moving() const {
    return cluster_ ? std::unique_lock{cluster_->moving()} : std::unique_lock<std::mutex>{};
  }
  // Which part of all keys these are, engine::call::no_slot where there is one server for all.
  int slot_of(const script::lock_keys& keys) const;
  // Null: there is no cluster.
  const std::shared_ptr<cluster_nodes>& cluster() const { return cluster_; }
  // Run a call to its end, wherever its keys go meanwhile.
  void run(engine::acquire& call, const std::stop_token& cancel) const;
  // `when_asked`: as command_connection's, of the first node that is asked.
  void run(engine::call& call, const script::lock_keys& keys, const std::function<void()>& when_asked = {}) const;
  callback_thread& callbacks() { return *callbacks_; }
  unsigned long generation() const { return generation_; }
  core::clock_drift drift() const { return drift_; }

  // Are we the process that made this client? Read before any lock (P33).
  bool is_ours() const noexcept;
  // Throws errc::used_after_fork if not.
  void require_ours() const;

  lock_name name_of(std::string_view text) const;  // Throws errc::invalid_name.
  script::lock_keys keys_of(const lock_name& name) const { return script::keys_of(name, options_.prefix); }
  std::string name_of(const script::lock_keys& keys) const;
  // Of a semaphore or a shared lock. Throws errc::invalid_option under plain naming.
  script::lock_keys counted_keys_of(const lock_name& name) const;

  enum class patience { once, as_told, what_is_left };  // what_is_left: of a wait that went to other names.
  // A trial is over in a moment, and nobody else has its name: others need not wait for a lease of it that a server has
  // forgotten, and so not for as long as one of ours may be (P18).
  enum class purpose { work, trial };
  // Empty: busy. Throws holdfast::error for everything else. `part`: of a counted kind, how much of it.
  std::optional<lease> acquire(std::string_view name, const acquire_options& what, patience how,
                               const script::part& part = {}, purpose why = purpose::work);
  // Busy is errc::timed_out: somebody held it for the whole of no time.
  lease acquire_or_throw(std::string_view name, const acquire_options& what, const script::part& part = {},
                         patience how = patience::as_told, purpose why = purpose::work);

  // The halves of an acquire, for those who bring their own way of waiting. `plan` throws what is wrong before anything
  // is sent; `conclude` takes over a call that is over, with everything that it leaves behind.
  struct planned {
    std::string name;
    engine::acquire::request what;
    core::acquire_settings how;
    int attempts_before;  // To connect, of the connection that it will run on.
  };
  planned plan(std::string_view name, const acquire_options& what, patience how, const script::part& part = {},
               purpose why = purpose::work);
  // Throws errc::cancelled, and tells of that end, where it was asked for before anything is sent.
  void require_wanted(const std::string& name, const std::stop_token& cancel);
  struct concluded {
    std::optional<lease> got{};
    errc code{};  // None, with nothing got: busy.
  };
  // What becomes of a lease that it got.
  struct keeping {
    renewal mode;
    std::optional<std::chrono::milliseconds> max_hold;
  };
  concluded conclude(engine::acquire& call, const std::string& name, const keeping& how, time_point started_at);
  // Of a quorum: as `plan`, and the rest of it, which blocks. Empty: busy.
  quorum_wish plan_on_quorum(std::string_view name, const acquire_options& what, patience how, const script::part& part,
                             purpose why = purpose::work);
  std::optional<lease> acquire_of_quorum(const quorum_wish& what);

  // As release() of holdfast/lease.hpp. The record is let go whatever comes.
  // `why` is written when the outcome is unknown.
  release_outcome release(const std::shared_ptr<lease_record>& record, error_detail& why);
  // As lease's destructor.
  void drop(const std::shared_ptr<lease_record>& record) noexcept;
  // The halves of a release. `let_go`: nothing renews it any more; the local deadline, or empty when there is nothing
  // to ask the server for, because it is already_lost.
  std::optional<time_point> let_go(lease_record& record);
  void conclude(const lease_record& record, release_outcome outcome);
  // Of a quorum, for what quorum::let_go has let go.
  release_outcome release_of_quorum(const lease_record& record, const last_votes& had, time_point give_up_at);
  // When to stop waiting for the answer to a release.
  time_point give_up_at(time_point deadline) const;

  // Throws why not, if the lease may not be trusted any more.
  void require_standing(lease_record& record) const;
  // As renew() of holdfast/lease.hpp.
  void renew(const std::shared_ptr<lease_record>& record);
  // Its beginning: `whose` hears of the end, which comes with the deadline if not before. Throws, and nobody hears,
  // when the lease does not stand any more.
  void begin_renewal(lease_record& record, time_point give_up_at, std::shared_ptr<engine::renewal_wish> whose);
  void cancel_renewal(const lease_record& record, const engine::renewal_wish& whose);

  // Throws unless it stands, and is a lease of a shared lock.
  void require_shared(lease_record& record) const;
  // The halves of a downgrade: the question, which throws unless the lease stands, and what its answer means. False:
  // the server has nothing of it.
  script::command plan_downgrade(lease_record& record) const;
  bool conclude_downgrade(const lease_record& record, const resp::value& reply) const;
  // As the two together, and what follows when it has nothing; of a quorum.
  void downgrade_on_majority(lease_record& record);
  // The server has nothing of what stands for us: its keeper, which alone ends leases and learns why, is to ask, too
  // (C4). It does until it knows. `whose` hears of that, by `give_up_at`. Throws as begin_renewal.
  void have_keeper_ask(lease_record& record, time_point give_up_at, std::shared_ptr<engine::renewal_wish> whose);
  // As that, waits, and throws the reason.
  [[noreturn]] void fail_as_gone(lease_record& record, time_point give_up_at);
  bool is_of_quorum() const { return quorum_ != nullptr; }

  // For calls that no thread waits for: somebody must be there to drive them.
  void start(const std::shared_ptr<node>& at, const std::shared_ptr<async_call>& what) {
    callbacks_->stand_by();
    at->start(what);
  }
  void cancel_async() noexcept;

  // Several leases of ours as one, under new records. The records given are no longer kept, and their handles are to be
  // forgotten. Throws the reason, with the name, when one of them was lost before; then nothing has changed.
  using records = std::vector<std::shared_ptr<lease_record>>;
  records join(const records& several);
  // As release and drop, for what was joined.
  release_outcome release_all(const records& several);
  void drop_all(const records& several) noexcept;

  // As of holdfast/client.hpp.
  void declare_nothing_forgotten();
  // Asks one of the servers for how long nothing may be granted there.
  std::optional<script::quarantined> ask_quarantine(const std::shared_ptr<node>& whom);
  // Of the server that serves these keys, as its connection heard it last.
  std::optional<std::chrono::milliseconds> quarantine(const script::lock_keys& about) const;

  // Asks one thing and waits for the reply, which may be the server's error. Throws when there is none.
  resp::value ask(const script::lock_keys& about, script::command what, engine::question::repeat how) {
    return ask(about, std::move(what), how, options_.timeout);
  }
  resp::value ask(const script::lock_keys& about, script::command what, engine::question::repeat how,
                  std::chrono::milliseconds timeout);
  // Asks several of one server in one go. The replies are in order.
  std::vector<resp::value> ask_all(const std::shared_ptr<node>& whom, std::vector<std::string> encoded);
  std::vector<resp::value> ask_all(const std::shared_ptr<node>& whom, std::vector<script::command> what);
  // The servers that keep locks, all of them. Of a cluster: the primaries, for whom it waits if none is known yet.
  // Throws cannot_connect if this process has too little of something for one of them; or has those that there are,
  // and says why.
  std::vector<std::shared_ptr<node>> servers() const;
  std::vector<std::shared_ptr<node>> servers(std::optional<error>& why_one_is_missing) const;
  // The reply to a question that is over. Throws when there is none.
  resp::value reply_of(const engine::question& call, const script::lock_keys& about) const;
  // Throws the error behind `reply`, if it is one.
  void throw_if_error(const resp::value& reply, std::string subject) const;
  [[noreturn]] void fail(errc code, error_detail detail) const;
  // `found`: a type of Redis, or what the scripts call a kind.
  [[noreturn]] void fail_wrong_kind(const script::lock_keys& keys, const std::string& found) const;

private:
  release_outcome release_all_of_quorum(const records& several);
  struct began {
    time_point at;
    int attempts_before;  // As of planned.
  };
  [[noreturn]] void fail(errc code, const engine::acquire& call, const std::string& name, const began& then) const;
  // As acquire, for what is waited for: behind the other threads of this process. Uses up what is planned.
  void stand_by(const script::lock_keys& keys);
  std::optional<lease> acquire_in_turn(planned& what, const acquire_options& options, time_point started_at);
  // Its time was over, or it was cancelled, before it was its turn to ask.
  [[noreturn]] void fail_behind_others(const planned& what, const local_line::outcome& turn, time_point started_at);
  std::shared_ptr<lease_record> hand_on(const std::shared_ptr<lease_record>& giver, fencing_token token);
  void ask_for_more(const lease_record& giver, const core::hand_over_queue::more& what) noexcept;
  bool let_keeper_go(const lease_record& record);
  // The index of one that was lost before, if there is one.
  std::optional<std::size_t> keep_as_one(const records& several, engine::keeper::leases joined, time_point deadline);
  std::optional<std::size_t> keep_each(const records& several, const records& joined);
  std::optional<time_point> let_go_all(const records& several);
  bool pass_on(const std::shared_ptr<lease_record>& record);
  release_outcome do_release(const std::shared_ptr<lease_record>& record, error_detail& why);
  void abandon(lease_record& record) noexcept;
  // How long the server may keep, from now on, what nothing renews any more. `last_effect`: when a late copy of its
  // acquire may take effect; past for none.
  std::chrono::milliseconds may_remain(std::chrono::milliseconds ttl, time_point last_effect) const;
  lease handle_of(const std::shared_ptr<lease_record>& record);
  void settle(engine::acquire& call);
  void release_in_background(const lease_record& record);
  void forget_copies(const lease_record& record);
  template <class Question>
  std::vector<resp::value> ask_together(const std::shared_ptr<node>& whom, std::vector<Question> what);
  std::optional<script::quarantined> ask_epoch(const std::shared_ptr<node>& one, script::epoch_start start);
  void declare_nothing_forgotten(const std::shared_ptr<node>& whom);
  resp::value reply_of(const engine::question& call, const node& at, const began& then) const;
  // What a call has come to that heard `code` of its server, and what goes with it.
  static errc refined(errc code, const node& at);
  static void explain(error_detail& detail, errc code, errc heard, const node& at, int attempts_before);
  std::string why_nothing_is_granted(const node& by) const;
  bool is_of_sentinels(const std::string& words) const;
  void report_end(const std::string& name, acquire_result result, time_point started_at, int attempts);

  const unsigned long generation_;
  const client_options options_;
  const bool has_alternative_;
  const bool is_quorum_member_;
  const std::string display_;
  std::once_flag owner_is_known_{};
  std::shared_ptr<const std::string> owner_{};
  const std::string user_;
  const int database_;
  const core::clock_drift drift_;
  const std::shared_ptr<std::atomic<bool>> wants_locks_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<callback_thread> callbacks_;
  const std::shared_ptr<reporter> reporter_;
  const std::shared_ptr<net::sentinel_watch> sentinels_;  // Null: there are none.
  const std::function<void(command_connection::ended_calls)> conclude_;
  const std::shared_ptr<cluster_nodes> cluster_;  // Null: there is none.
  const std::shared_ptr<local_restart> restart_;  // Null: its server is not ours to start.
  const std::shared_ptr<node> node_;              // Of a cluster: the lobby; of a quorum: its first server, not used.
  std::atomic<bool> is_ending_{false};            // The client is gone: what nobody waits for is cancelled.
  const std::unique_ptr<quorum> quorum_;          // Null: there is none.
  local_line line_;
};

// What a lease holds. Empty leases have none.
class lease_handle {
public:
  static const lease_handle& of(const lease& held) { return *held.handle_; }
  static std::unique_ptr<lease_handle> taken_from(lease& from) { return std::move(from.handle_); }

  lease_handle(std::shared_ptr<client_state> o, std::shared_ptr<lease_record> r)
      : owner{std::move(o)}, record{std::move(r)} {}

  std::shared_ptr<client_state> owner;
  std::shared_ptr<lease_record> record;
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
