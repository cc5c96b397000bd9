// SPDX-License-Identifier: Apache-2.0
// What a client of a quorum has instead of a node: the connections for votes, the keeper, and for those who wait a
// client of one server, whose line says who may try.
#pragma once

#include "client/errand_threads.hpp"
#include "client/quorum_keeper_thread.hpp"
#include "client/reporter.hpp"
#include "client/settings.hpp"
#include "client/vote_connections.hpp"
#include "client/wake_event.hpp"
#include "engine/quorum_acquire.hpp"

#include <holdfast/lease.hpp>

#include <boost/intrusive/list.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class client_state;

// The list of servers that a client was given, each as `host:port`; as they are to keep it; and one of them alone.
std::vector<std::string> names_of(const settings& of_quorum);
script::quorum_record record_of(const settings& of_quorum);
settings single_server(const settings& of_quorum, std::size_t node);

// How long one server is waited for when the others have not decided it.
duration patience_of(std::chrono::milliseconds ttl, std::chrono::milliseconds timeout);

// One acquire, as client_state::plan_on_quorum gives it.
struct quorum_wish {
  std::string name;
  script::lock_keys keys;
  std::shared_ptr<const std::string> label;
  std::chrono::milliseconds ttl;
  fencing_token min_fence;
  renewal mode;
  std::optional<duration> wait;  // Empty: until cancelled.
  bool only_once;
  bool is_trial;  // As of client_state::purpose.
  std::stop_token cancel;
  script::part part{};  // Of a counted kind: how much of it.
  std::optional<std::chrono::milliseconds> max_hold{};
};

// Of a lease that is not kept any more: what the servers may have of it, and until when it would have stood.
struct last_votes {
  engine::votes_left votes;
  time_point deadline;
};

class quorum {
public:
  // `commands`, `keeper`: what a channel to each of the servers is told. `tell`: who hears of leases.
  quorum(const settings& from, const engine::channel::settings& commands, const engine::channel::settings& keeper,
         core::clock_drift drift, const std::shared_ptr<reporter>& tell);
  ~quorum();
  quorum(const quorum&) = delete;
  quorum& operator=(const quorum&) = delete;

  struct end {
    std::shared_ptr<lease_record> got{};
    errc code{};  // None, with nothing got: busy.
    error_detail why{};
    int attempts = 0;
  };
  end acquire(const quorum_wish& what);

  // From now on nothing renews it.
  last_votes let_go(lease_record& record);
  release_outcome release(const lease_record& record, const last_votes& had, time_point give_up_at);
  void release_in_background(const lease_record& record, const last_votes& had);
  // A majority of servers that say so is enough, and those that do not count it as a writer until its next try or its
  // end. False: a majority has nothing of the lease.
  bool downgrade(const lease_record& record, time_point give_up_at);
  // Several that are lost together from now on; each is still kept by its own votes. As quorum_keeper_thread::join.
  std::optional<std::size_t> join(const engine::keeper::leases& several, const engine::keeper::leases& joined) {
    return keeper_->join(several, joined);
  }
  bool renew_now(const engine::held_lease& lease, time_point give_up_at, std::shared_ptr<engine::renewal_wish> whose) {
    return keeper_->renew_now(lease, give_up_at, std::move(whose));
  }
  void cancel(const engine::held_lease& lease, const engine::renewal_wish& whose) { keeper_->cancel(lease, whose); }

  // A client of one of the servers, for what is asked of each alone.
  std::size_t size() const { return from_.server.quorum.size(); }
  const std::string& name(std::size_t node) const { return names_[node]; }
  const script::quorum_record& record() const { return record_; }
  std::shared_ptr<client_state> client_of(std::size_t node);
  vote_connections& votes() { return votes_; }

  // For the calls that no thread of the user's waits for.
  errand_threads& errands() { return *errands_; }
  // When the client goes: those of them end that can be cancelled.
  std::stop_token client_is_gone() const { return client_is_gone_.get_token(); }
  void cancel_errands() { client_is_gone_.request_stop(); }

  void close(duration at_most, bool wait) noexcept;

private:
  using round = engine::quorum_acquire;
  class search;

  // The line of those who wait, on one of the servers.
  class turn_watch;
  struct turn {
    std::shared_ptr<client_state> line;
    std::shared_ptr<turn_watch> watch;
  };
  turn turn_of(std::size_t node);
  void let_go_in_background(const lease_record& record, const std::vector<engine::quorum_vote>& votes,
                            const std::vector<bool>& is_settled);
  std::string report(const round& of, const quorum_wish& what) const;
  // `missed`: what those did not do that have a trouble.
  std::string report(const std::vector<std::string>& troubles, std::string_view missed) const;
  // A hint of this process for its own threads; of another lock none is any use, and it would have them poll.
  void wait_for_release(const script::lock_keys& of, duration at_most, const std::stop_token& cancel);
  void tell_released(const script::lock_keys& what) noexcept;

  const settings from_;
  const core::clock_drift drift_;
  const script::quorum_record record_;
  const std::vector<std::string> names_;
  const std::shared_ptr<quorum_keeper_thread> keeper_;
  vote_connections votes_;
  const std::shared_ptr<errand_threads> errands_ = std::make_shared<errand_threads>();
  std::stop_source client_is_gone_{};
  std::mutex mutex_{};  // Of what follows.
  std::vector<std::shared_ptr<client_state>> clients_;
  std::vector<turn> turns_;
  struct pausing : boost::intrusive::list_base_hook<> {
    explicit pausing(const std::string& k) : key{&k} {}
    const std::string* key;
    wake_event news{};
    bool is_told = false;
  };
  boost::intrusive::list<pausing, boost::intrusive::constant_time_size<false>> pausing_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
