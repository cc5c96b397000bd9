// SPDX-License-Identifier: Apache-2.0
// One lease of quorum_keeper, and the votes that make it. Apart from quorum_keeper.cpp, which has the servers; only
// that one sees it.
#pragma once

#include "engine/quorum_call.hpp"
#include "engine/quorum_keeper.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace holdfast::engine {

// A server, as the leases see it.
class quorum_keeper::server final : public keeper_listener {
public:
  server(quorum_keeper& of, std::size_t index, channel::settings how, base::random_source& rng, keeper_listener& to)
      : flow{std::move(how), of.how_.drift, rng, *this}, of_{&of}, index_{index}, to_{&to} {}

  void on_at_risk(const std::shared_ptr<held_lease>&) override {}  // The whole may not be.
  void on_lost(const std::shared_ptr<held_lease>& lease, errc reason) override;
  void on_renewed(const std::shared_ptr<held_lease>& lease, duration margin) override;
  void on_renew_failed(const std::shared_ptr<held_lease>& lease, errc reason) override;
  void on_up() override { to_->on_up(); }
  void on_down(const connection_failure& failure) override { to_->on_down(failure); }
  void on_clock_step(duration step) override { to_->on_clock_step(step); }

  keeper flow;
  bool is_wanted = false;  // A vote is to be asked for, and there is no connection.

private:
  quorum_keeper* of_;
  std::size_t index_;
  keeper_listener* to_;
};

// A server's vote, as its keeper sees it.
class quorum_keeper::share final : public held_lease {
public:
  share(kept& w, const held_lease& of, fencing_token t, time_point ends, const settings& how)
      : held_lease{of.keys, of.owner, t, of.ttl, ends}, whole{&w}, how_{&how} {
    last = of.last;  // No vote is renewed beyond it (R14).
  }
  script::command renewal_command() const override {
    return script::renew_vote(keys, owner, grant, ttl, how_->prefix, how_->record);
  }
  kept* const whole;

private:
  const settings* how_;
};

// Somebody's wish for a renewal, told when enough have renewed, or too few can.
class quorum_keeper::wish {
public:
  wish(kept& w, std::shared_ptr<renewal_wish> whose, std::size_t servers, std::size_t needed, time_point until)
      : whole{&w}, give_up_at{until}, asked(servers), whose_{std::move(whose)}, needed_{needed} {}

  // Another server is asked.
  void add(std::size_t node, std::shared_ptr<renewal_wish> part) {
    asked[node] = std::move(part);
    ++open_;
  }
  void on_one(errc how) noexcept;
  bool is_of(const renewal_wish& whose) const { return whose_.get() == &whose; }
  bool is_decided() const { return end_.has_value(); }
  bool has_failed() const { return is_decided() && *end_ != errc{}; }
  // Votes that came behind the wish make up for those that it found lost.
  void note_that_the_lease_stands();
  void tell() { std::exchange(whose_, nullptr)->on_end(*end_); }
  void end(errc how) {
    if (!end_) end_ = how;
  }
  void begin_cancelling() { is_cancelled_ = true; }
  // When each server's part has ended.
  void end_cancelling() { end(may_be_sent_ ? errc::cancelled_in_flight : errc::cancelled); }

  kept* whole;  // Null when it has gone.
  const time_point give_up_at;
  std::vector<std::shared_ptr<renewal_wish>> asked;  // Of each server, its part; null: it was not asked.

private:
  std::shared_ptr<renewal_wish> whose_;
  std::size_t open_ = 0;
  std::size_t needed_;
  std::size_t unknown_ = 0;  // Of those that have ended; the server may have renewed it.
  bool may_be_sent_ = false;
  bool is_cancelled_ = false;
  errc first_failure_{};
  std::optional<errc> end_{};
};

// A server is asked for a vote that it has lost, or never gave.
class quorum_keeper::repair final : public reply_sink {
public:
  repair(kept& whole, std::size_t index) : whole_{&whole}, index_{index} {}
  ~repair();
  repair(const repair&) = delete;
  repair& operator=(const repair&) = delete;

  bool is_open() const { return is_open_; }
  time_point sent_at() const { return sent_at_; }  // The last time.
  // What is ours already when it is asked for the first time was given in the round; later it may be of a copy of this.
  bool found_of_the_round() const { return asked_ == 1; }
  void send(time_point now);
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;

private:
  // The vote may be a writer's still, and is found again by the reader that the lease is now.
  bool is_asked_as_another() const;

  kept* whole_;
  std::size_t index_;
  bool is_open_ = false;
  char asked_as_ = 'x';  // The mode.
  bool is_raising_ = false;
  int asked_ = 0;
  time_point sent_at_{};
  time_point asked_at_{};  // While it raises: when the vote was asked for, and how long it lasts.
  time_point until_{};
};

class quorum_keeper::kept {
public:
  kept(quorum_keeper& of, std::shared_ptr<held_lease> lease, std::string label, std::vector<quorum_vote> votes,
       renewal mode, const script::part& what);
  ~kept();
  kept(const kept&) = delete;
  kept& operator=(const kept&) = delete;

  // Apart from the constructor, so that what is kept by then is let go when there is no memory for the rest.
  void begin(time_point sent_at);
  // Decides what is to be decided now; false: it is lost, and told so.
  bool look(time_point now);
  // Nothing renews it any more, and it is told nothing; the last call but for the destructor.
  votes_left take_votes() noexcept;
  void renew_now(time_point now, time_point give_up_at, std::shared_ptr<renewal_wish> whose);
  void cancel(const renewal_wish& whose);

  // News of one server's vote. Decided upon by look().
  void on_renewed(std::size_t node, time_point until);
  void on_lost(std::size_t node, errc reason);
  // There is a connection to this server. Its vote is asked for if it is missing.
  void mend_on(std::size_t node);
  void on_decided_wish() { of_->look_at(*this, time_point{}); }

  quorum_keeper& of() const { return *of_; }
  const std::shared_ptr<held_lease>& lease() const { return lease_; }
  void go_on_as(std::shared_ptr<held_lease> next);
  std::vector<fencing_token> begin_narrowing();
  void end_narrowing(const std::optional<script::part>& to);
  agenda<kept>::place place{};
  const std::uint64_t number;

private:
  friend class repair;

  void lose(time_point now);
  void end_as_lost(time_point now, errc reason);
  void fall(time_point now);
  void withdraw_repairs(time_point now);
  void let_shares_go() noexcept;
  void tell_wishes();
  void keep_share(std::size_t node, fencing_token token, time_point sent_at, time_point until);
  // `is_of_the_round`: it was given there already.
  void keep_mended(time_point now, std::size_t node, fencing_token token, time_point sent_at, time_point until,
                   bool is_of_the_round);
  void mend(time_point now);
  void ask(time_point now, const std::shared_ptr<wish>& one, std::size_t node);
  void end_parts(const wish& of);
  void renew_share(time_point now, std::size_t node);
  void renew_of_the_round(time_point now, std::size_t node);
  void renew_given_again(time_point now);

  quorum_keeper* of_;
  std::shared_ptr<held_lease> lease_;
  std::string label_;
  script::part part_;
  int needed_;  // Votes.
  renewal mode_;
  core::quorum_deadline until_;
  std::vector<quorum_vote> votes_;
  std::vector<std::shared_ptr<share>> shares_;
  std::vector<std::unique_ptr<repair>> repairs_;
  std::vector<std::shared_ptr<wish>> wishes_{};
  time_point mend_at_ = never;
  duration pause_;
  errc reason_{};  // Of the last vote that a server said was lost.
  // Somebody broke it, and it is not asked for again; under this token the server may have it until its expiry.
  std::vector<fencing_token> broken_;
  // Of votes that have ended by our clock and perhaps not there: an answer to a renewal was not heard.
  std::vector<fencing_token> expired_;
  bool is_narrowing_ = false;
  bool is_renewed_by_hand_ = false;  // Since somebody asked for that, until it failed or was cancelled.
  std::vector<bool> given_again_;
  bool may_count_again_ = false;
  bool is_warned_ = false;
  time_point told_until_{};  // The last renewal.
};

}  // namespace holdfast::engine
