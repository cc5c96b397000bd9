// SPDX-License-Identifier: Apache-2.0
// One schedule with several servers that know nothing of each other, and clients that a majority of them grants locks
// to. Its own world beside world.hpp, because there everything that watches looks at the one server; here what counts
// is what the holders believe.
//
//  invariant | what must hold
//  ----------+-----------------------------------------------------------------------------------------------------
//  C1        | two leases of one lock are never both valid, nor more permits than there are, nor a writer and anybody
//            | else; but for a server's clock that stepped or keys that were deleted while it ran, and then the
//            | overlap is put down to that; or for a vote that an operator took back at once (`break --now`) and
//            | another has had since; or for one lease of each of two lists (quorum_lists.cpp)
//  C2        | the token of who has all of a lock is above all before it, and every later one above that, in the order
//            | in which they are got, with the same exceptions
//  C3        | no update of what an exclusive lock protects is lost, if it is guarded as docs/fencing.md says; but of a
//            | token that two were granted by one of those exceptions
//  C4        | a client that runs is told of a loss before the lease is not valid any more, and once; a deadline that
//            | has passed is not moved
//  C5        | nobody is told that there is no quorum while enough servers were there, untroubled, for all the time in
//            | which none is said to have been; nor that nothing has come of a call while enough servers have a vote of
//            | it, then or later; who was told that it released a lock gave it back on as many servers as make one, and
//            | who was told that it had lost it did not; and when all is quiet nothing of a lock is left on any server
//  loss      | nobody is told of a loss while his client and as many servers as make the lock, that had voted for it,
//            | were well, and nobody had broken it
//  break     | what an operator was told is broken is renewed no more, and over a ttl later; but where the record of
//            | the break was deleted
//  C6        | no server is asked to renew what a release() that has returned was about
//  C9, H29,  | as in checkers/one_script.hpp, on every server
//  script,   |
//  model     |
//  liveness  | when the trouble is over every lock is to be had, and whoever waits gets it, also when one
//            | server stays away for good
#pragma once

#include "event_queue.hpp"
#include "guarded_store.hpp"
#include "model_server.hpp"
#include "network.hpp"
#include "plan.hpp"
#include "quorum/list_history.hpp"
#include "quorum/quorum_break.hpp"
#include "quorum/quorum_client.hpp"
#include "quorum/quorum_replace.hpp"
#include "quorum/server_list.hpp"
#include "statistics.hpp"
#include "world.hpp"

#include <array>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

class quorum_world {
public:
  // `nodes`: odd.
  quorum_world(plan what, int nodes, std::shared_ptr<lua_host> scripts, const canary* planted, statistics& into);
  ~quorum_world();

  void run();
  const std::vector<violation>& violations() const { return violations_; }
  std::uint64_t events() const { return events_.count(); }
  std::uint64_t fingerprint() const { return fingerprint_; }
  void keep_trace() { keeps_trace_ = true; }
  const std::vector<std::string>& trace() const { return trace_; }

  // ---- for a course of events that is written by hand (scenarios/quorum_story.hpp) ----
  event_queue& queue() { return events_; }
  instant now() const { return events_.now(); }
  model_server& server(std::size_t node) { return servers_[node]; }
  network& net(std::size_t node) { return nets_[node]; }
  const lock& lock_of(int number) const { return plan_.locks[static_cast<std::size_t>(number)]; }
  // Before anybody replaces it.
  const server_list& list() const { return history_.list(0); }
  quorum_client& start_client(const process_plan& what, server_list list);
  // Overlaps may be its doing.
  void disturb(cause why) { disturbances_.push_back({why, events_.now()}); }
  void complain(std::string invariant, std::string what);
  void say(std::string text);

private:
  struct view {
    instant valid_until;
    instant got_at;
    int client;
    std::uint64_t token;
    int permits;
    std::string owner;
    std::size_t list;                    // Which one.
    bool is_left_open;                   // list_history.hpp
    std::vector<std::size_t> votes{};    // Of which servers it had when its deadline was moved,
    std::vector<std::size_t> counted{};  // and those of them that it had at the move before, too (R18).
    bool is_renewed = false;             // Since the grant.
  };
  // Of a hold that operators broke.
  struct broken {
    std::set<std::size_t> on{};
    std::set<std::size_t> at_once_on{};
    instant since = end_of_time;
    instant told_at = end_of_time;  // That it is.
  };

  // Of a lock that nobody has, while nothing is in trouble: who waits for it, and since when.
  struct idle {
    instant looked_at{};
    std::map<int, instant> waits_since{};  // By client.
  };

  quorum_client::hooks client_hooks(int client);
  void on_hold(int client, const quorum_client::held& one, instant valid_until);
  void on_deadline(int client, const quorum_client::held& one, instant until);
  void check_told(int client, const quorum_client::held& one);
  void note_votes(const quorum_client::held& one);
  void check_lost(int client, const quorum_client::held& one, hold_end how);
  // Into valid_.
  void let_in(int client, const quorum_client::held& one, const view& seen);
  view view_of(int client, const quorum_client::held& one, instant valid_until);
  int permits_of(const quorum_client::held& one) const;
  // `failure`: the invariant; null: none.
  void check_failure(const char* failure, std::size_t node, std::string_view what, const resp::value& reply);
  void check_renewal(std::size_t node, const script_run& run);
  void note_given_back(std::size_t node, const script_run& run);
  void check_release(int client, const quorum_client::held& one, release_outcome told);
  void note_vote(std::size_t node, const script_run& run);
  void note_break(std::size_t node, const script_run& run);
  bool may_be_in_quarantine(std::size_t node);
  bool is_free_on(std::size_t node, const lock& what);
  bool is_free(const lock& what);
  void check_idle(int lock);
  bool is_let_in_by_a_break(const std::string& one, const std::string& other) const;
  void check_broken(int client, const quorum_client::held& one, instant until);
  bool has_lost_its_place(const view& seen, std::uint64_t token) const;
  void check_room(int client, const quorum_client::held& one, const view& seen);
  void check_token(int client, const quorum_client::held& one, const view& seen);
  duration farthest_vote(int client);
  void check_silence(int client, const script::part& what, duration silence);
  void check_that_it_has_none(int client, int lock, const script::part& what, const std::vector<owner_id>& owners);
  bool has_vote(std::size_t node, int lock, const owner_id& owner);
  void check_write(int lock, std::uint64_t token, guarded_store::written how);
  bool is_excused(int lock, cause& why) const;
  void mix(std::uint64_t number);
  bool is_everybody_done() const;
  bool is_to_be_had(const lock& of) const;
  void check_that_all_are_served();
  bool goes_on(instant until);
  void check_that_all_losses_were_told();
  void check_that_nothing_is_left();
  void check_that_all_is_to_be_had();
  void check_that_all_is_to_be_had_by(quorum_client& who);

  // ---- what befalls it (quorum/quorum_faults.cpp) ----
  void plan_trouble();
  void strike(fault what);
  void strike_network(fault what, std::size_t node);
  void strike_client(fault what);
  void stop(quorum_client& who, fault how, duration time);
  void strike_server(fault what, std::size_t node);
  void end_trouble();
  void lose_one_for_good();
  void note_clock(std::size_t node);
  void break_something();
  void delete_keys(std::size_t node, std::initializer_list<std::string> words);
  // So much longer somebody may wait in a line.
  duration patience_with_the_dead() const;
  // It cannot be counted on until then.
  void trouble_node(std::size_t node, instant until);
  std::vector<wall_clock> agree_on_the_latest();
  quorum_client* somebody();
  route& some_route(std::size_t node);

  // ---- another list of servers for it (quorum/quorum_lists.cpp, quorum_last_list.cpp) ----
  struct replacement {  // Which list by which.
    std::size_t from;
    std::size_t to;
    bool reopen = false;
  };
  enum class next_list { none, other, first_servers, same_servers };
  void draw_lists(int nodes);
  server_list with_spares(std::uint32_t generation, seeded_random& rng);
  void add_server(std::size_t node, const wall_clock& clock, std::shared_ptr<lua_host> scripts);
  bool is_replacing() const { return history_.is_replacing(); }
  const server_list& current_list() const { return history_.list(history_.current()); }
  const server_list& some_list();
  void plan_replacement();
  void plan_rival();
  void hold_something();
  void replace(const replacement& what);
  void replace_later(const replacement& what, duration wait);
  bool is_open_everywhere(std::size_t which) const;
  void on_replaced(const replacement& what, errc how, const std::string& why);
  void on_not_replaced(const replacement& what, errc how, const std::string& why);
  void begin_third(std::size_t from);
  replacement third_from(std::size_t from);
  replacement told_to(const replacement& what, errc how, const std::string& why);
  void clear_records(const replacement& what);
  void finish_replacement();
  void finish(const replacement& what);
  void move_to_current_list(std::size_t client);
  void start_spares(std::size_t list);
  bool is_wanted(std::size_t node) const;
  void retire(std::size_t node);
  std::uint32_t generation_at(std::size_t node) const;
  void note_record(std::size_t node);

  plan plan_;
  const canary* planted_;
  statistics* statistics_;
  event_queue events_;
  std::vector<wall_clock> clocks_;  // Of the servers, when nobody sets them.
  std::deque<model_server> servers_;
  std::deque<network> nets_;
  std::deque<std::unique_ptr<quorum_client>> clients_;  // Also the dead.
  std::vector<process_plan> client_plans_;
  std::map<int, std::map<int, view>> valid_;                                 // By lock and hold.
  std::map<std::string, instant, std::less<>> released_at_;                  // By owner id.
  std::map<std::string, std::set<std::size_t>, std::less<>> given_back_by_;  // By owner id: the votes of which servers.
  std::map<std::string, std::set<std::size_t>, std::less<>> voted_for_by_;   // Likewise: which servers ever did.
  std::map<std::string, broken, std::less<>> broken_;                        // Likewise.
  std::map<int, std::uint64_t> last_token_;                                  // The largest.
  std::map<int, std::uint64_t> last_full_token_;                             // Of those who had all of it.
  std::map<int, std::set<std::uint64_t>> tokens_;                            // All that were granted.
  std::map<std::pair<int, std::uint64_t>, cause> granted_twice_;             // By lock and token, and why.
  std::map<int, idle> idle_;                                                 // By lock.
  std::map<int, instant> quarantined_at_;                                    // By client: its last round that was.
  guarded_store store_;
  list_history history_;
  std::size_t spares_ = 0;  // Servers that are not on the first list.
  seeded_random lists_;
  seeded_random later_lists_;               // What there is of them beside one replacement.
  std::optional<std::size_t> rival_{};      // Which somebody else has in mind for the first one.
  next_list third_kind_ = next_list::none;  // What comes behind the second.
  server_list third_list_{};                // Unless its servers are those of the second.
  std::optional<std::size_t> third_{};      // Once somebody has begun it.
  std::size_t third_from_ = 0;
  std::deque<quorum_replace> operators_;  // Who replace the one by the other.
  bool must_finish_ = false;
  bool is_finished_ = false;
  int refusals_ = 0;  // In the end.
  std::set<std::size_t> retired_;
  std::vector<disturbance> disturbances_;
  std::map<std::size_t, instant> deleted_at_;  // The last time that keys of this server were.
  std::set<std::size_t> has_forgotten_;        // Servers that ever lost keys, in whatever way.
  std::deque<quorum_break> breaks_;
  std::vector<instant> node_trouble_until_;
  std::map<int, instant> client_trouble_until_;
  std::vector<violation> violations_;
  seeded_random trouble_;
  std::vector<fault> kinds_;
  duration most_ahead_{0};
  bool is_drawn_ = false;  // Its trouble, by us.
  bool trouble_is_over_ = false;
  std::optional<instant> host_died_at_{};  // The last one, of a client.
  instant dead_have_turns_until_{};        // Perhaps, in some line.
  std::optional<std::size_t> gone_{};      // The server that does not come back.
  int last_number_ = 0;
  int to_come_ = 0;
  int probes_ = 0;
  std::uint64_t fingerprint_ = 14695981039346656037u;
  bool keeps_trace_ = false;
  std::vector<std::string> trace_;
};

}  // namespace holdfast::sim
