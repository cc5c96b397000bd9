// SPDX-License-Identifier: Apache-2.0
// One try for a lock of a quorum, with its withdrawal: core/quorum_round decides, this one asks the servers and reads
// what they say. Who waits for a lock tries again with another of these, which has another owner id
// (core/quorum_search.hpp says when).
#pragma once

#include "core/quorum_round.hpp"
#include "core/quorum_search.hpp"
#include "engine/quorum_call.hpp"
#include "engine/quorum_keeper.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

//  phase       | ends when
//  ------------+-------------------------------------------------------------------------------------------
//  connecting  | as many as must vote are connected, and of the others those that may soon be; or the time is up
//  voting      | the round is over (core/quorum_round.hpp)
//  withdrawing | those that have certainly voted say that they have not any more; only if the round is lost (B55)
class quorum_acquire final : public quorum_call {
public:
  struct request {
    script::lock_keys keys;
    std::shared_ptr<const std::string> label;
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds max_ttl;
    fencing_token min_fence;
    core::clock_drift drift;
    duration patience;         // With one server, from when it was asked.
    time_point connect_until;  // By then as many as must vote must be connected.
    std::string prefix;
    script::quorum_record record;
    script::part part{};  // Of a counted kind: how much of it.
    script::standing who = script::standing::newcomer;
    // When the wait is over that it belongs to: a withdrawal is waited for until then, or a little longer.
    time_point over_at = never;
  };
  quorum_acquire(voters& all, request what, const owner_id& owner, time_point started_at);

  void step(time_point now) override;
  time_point wake_at() const override { return wake_at_; }
  bool is_over() const override { return phase_ == phase::over; }
  void cancel() override { is_cancelled_ = true; }

  // Only when is_over().
  using result = core::quorum_round::result;
  result outcome() const { return outcome_; }
  bool was_cancelled() const { return outcome_ != result::won && is_cancelled_; }
  bool enough_voted() const { return round_ && round_->had_enough_votes(); }
  // Of one that was won.
  const owner_id& owner() const { return owner_; }
  fencing_token token() const { return round_->token(); }
  time_point deadline() const { return round_->deadline(); }
  time_point sent_at() const { return sent_at_; }  // Of a lost one, too.
  // What is known of each server's vote. Of a round that was lost: what is still to be withdrawn there, where there is
  // a not_after.
  const std::vector<quorum_vote>& votes() const { return votes_; }
  // The same, as whoever tries again remembers it.
  std::vector<core::quorum_search::leftover> left() const;
  // Was the server there and spoke? Those are of use to whoever waits.
  bool has_spoken(std::size_t node) const { return nodes_[node].has_spoken; }
  // The shortest remaining time of those who hold it; empty when nobody said so.
  std::optional<std::chrono::milliseconds> held_for() const { return held_for_; }
  // Has it written our list where a server did not have it as open, and most have? Who comes again finds it open.
  bool has_opened() const { return has_opened_; }
  // What kept each server from voting, for people; empty: nothing did.
  const std::string& trouble(std::size_t node) const { return nodes_[node].trouble; }
  // What that is of those who had not answered yet when the others had decided it.
  static constexpr std::string_view not_waited_for = "was not waited for";
  // The first reason that trying again will not remove; none, if there is none.
  errc final_reason() const { return final_; }
  const std::string& final_text() const { return final_text_; }
  // Of a wrong kind and of another size: what it is instead, and where.
  const std::string& final_why() const { return final_why_; }

private:
  enum class phase { connecting, voting, withdrawing, over };
  struct seen {
    bool has_spoken = false;
    bool is_to_leave = false;  // It gave a vote that must not count, or may have.
    bool is_read = true;       // What its slip says has been taken in.
    bool is_raising = false;
    bool is_denied = false;                    // By its ACL, perhaps behind a vote that it gave.
    core::quorum_search::passage told_over{};  // As core::quorum_search::leftover.
    core::quorum_search::passage heard_over{};
    std::uint64_t sent_again = 0;  // The channel's sent_again_unheard(), when it was asked for its vote.
    int lates = 0;
    bool keeps_our_list = false;            // As open.
    std::optional<std::string> unopened{};  // The record over which our list may be opened there.
    std::string trouble{};
  };

  core::quorum_search::passage passage_at(std::size_t node) const;
  bool was_waited_for(const seen& one) const;
  bool is_refused_for_good() const;
  void note_final_failure();
  void connect(time_point now);
  bool are_different();
  void begin(time_point now);
  std::vector<std::optional<server_time>> clocks_at(time_point now) const;
  duration most_apart() const { return duration{what_.max_ttl} / 2; }
  bool is_out_of_step(std::size_t node, time_point now) const;
  void ask_for_vote(std::size_t node, time_point now);
  void vote(time_point now);
  void read(std::size_t node, time_point now);
  void note_heard(std::size_t node);
  void read_vote(std::size_t node, time_point now, const resp::value& reply);
  void on_late(std::size_t node, time_point now);
  void refuse(std::size_t node, core::quorum_round::refusal why, std::string text, errc final = {});
  // What an error reply, or anything else, says of it, and whether trying again will not remove that.
  void note_error(std::size_t node, const std::string& text);
  void note_trouble(std::size_t node, std::string text, errc final);
  void refuse_what_it_is(std::size_t node, errc final, std::string what);
  std::size_t needed() const { return static_cast<std::size_t>(votes_needed(size(), what_.part)); }
  void refuse_for_list(std::size_t node, const std::string& kept);
  bool may_hear_that_it_is_open() const;
  bool is_open_at_majority() const;
  void open_the_rest(time_point now);
  void win(time_point now);
  void withdraw(time_point now, result how);
  void await_withdrawal(time_point now);
  void finish(result how);

  request what_;
  owner_id owner_;
  phase phase_ = phase::connecting;
  time_point started_at_;
  time_point sent_at_{};
  time_point raised_at_{};
  time_point withdrawn_at_{};
  time_point wake_at_;
  bool is_cancelled_ = false;
  std::optional<core::quorum_round> round_{};
  fencing_token proposal_{};
  std::vector<seen> nodes_;
  std::vector<quorum_vote> votes_;
  std::optional<std::chrono::milliseconds> held_for_{};
  bool has_opened_ = false;
  errc final_{};
  std::string final_text_{};
  std::string final_why_{};
  result outcome_ = result::unreachable;
};

}  // namespace holdfast::engine
