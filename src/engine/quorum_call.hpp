// SPDX-License-Identifier: Apache-2.0
// What is asked of all servers of a quorum at once: the servers, and the base of everything that asks them. Apart from
// call.hpp, which is about one connection: here the answer is what a majority says, and nobody waits for the rest
// (B56).
#pragma once

#include "core/quorum_round.hpp"
#include "core/quorum_votes.hpp"
#include "engine/channel.hpp"
#include "script/command.hpp"
#include "script/server_error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {

// One of the servers, and the connection to it over which votes are asked for.
class voter final : public channel_listener {
public:
  // As caller::hooks; called under the driver's mutex.
  struct hooks {
    std::function<void()> on_up{};
    std::function<void(const connection_failure&)> on_down{};
    std::function<void(duration, const core::server_clock& seen)> on_clock_step{};
  };

  // `name`: "10.0.0.2:6379", for people.
  voter(std::string name, channel::settings settings, base::random_source& rng, hooks tell)
      : name_{std::move(name)}, tell_{std::move(tell)}, channel_{std::move(settings), rng, *this} {
    channel_.set_demand(true);  // Whoever asks any of them asks all.
  }

  channel& wire() { return channel_; }
  const channel& wire() const { return channel_; }
  const std::string& name() const { return name_; }

  // It let the last one who asked wait in vain: the next does not wait for it.
  bool is_slow() const { return is_slow_; }
  void found_slow() { is_slow_ = true; }
  void found_quick() { is_slow_ = false; }

  // There is no connection, and it was tried in vain to make one: trying again goes on.
  bool is_out_of_reach() const;
  // And who is in a hurry does not wait for one that is being made.
  bool is_hopeless() const { return is_out_of_reach() || (is_slow_ && !channel_.is_ready()); }

  // How many connections there have been: what was sent over the present one is answered in order.
  std::uint64_t connection() const { return connections_; }

  // How often a connection has ended, or could not be made.
  std::uint64_t downs() const { return downs_; }

  // Has a connection come or gone since this was asked last?
  bool take_news() { return std::exchange(has_news_, false); }

  // What is wrong with it, for people; empty when nothing is.
  std::string trouble() const;

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(time_point now, duration step) override;

private:
  std::string name_;
  hooks tell_;
  bool is_slow_ = false;
  bool has_news_ = false;
  std::uint64_t connections_ = 0;
  std::uint64_t downs_ = 0;
  channel channel_;
};

using voters = std::vector<std::unique_ptr<voter>>;

// So many of them must vote before it is granted.
inline int votes_needed(std::size_t nodes, const script::part& what) {
  const auto count = static_cast<int>(nodes);
  return what.mode == 'p' ? core::votes_for(count, what.size) : core::majority_of(count);
}

// Not thread-safe: the driver (client/vote_connections.hpp) calls everything under one mutex. A call must not move, and
// what is unanswered when it goes away is answered to nobody.
class quorum_call {
public:
  explicit quorum_call(voters& all);
  virtual ~quorum_call() = default;
  quorum_call(const quorum_call&) = delete;
  quorum_call& operator=(const quorum_call&) = delete;

  // Does what is due: at the start, at wake_at(), after news of any server, and after cancel().
  virtual void step(time_point now) = 0;
  virtual time_point wake_at() const = 0;
  virtual bool is_over() const = 0;
  // The caller wants it no longer. What it has asked for is to be taken back.
  virtual void cancel() {}

  bool has_news() const { return has_news_; }
  void forget_news() { has_news_ = false; }
  void tell_news() { has_news_ = true; }

  // The driver's, when it leaves: what is unanswered is answered to nobody.
  void forget_all();

protected:
  // What was asked of one server, and what came of it.
  struct slip final : reply_sink {
    slip(quorum_call& o, voter& w) : of{&o}, whom{&w} {}
    ~slip() { whom->wire().forget(*this); }
    slip(const slip&) = delete;
    slip& operator=(const slip&) = delete;

    void on_reply(time_point now, time_point sent, const resp::value& answer) override;
    void on_cut(time_point now) override;

    bool is_open() const { return is_asked && !reply && !was_cut; }
    void clear();

    quorum_call* of;
    voter* whom;
    bool is_asked = false;
    bool was_cut = false;
    time_point sent_at{};
    std::optional<resp::value> reply{};
    epoch_watch::worth worth = epoch_watch::worth::nothing;  // Of a grant, when the answer came.
  };

  // Only where the connection is ready. Forgets what was asked before.
  void ask(std::size_t whom, time_point now, script::command what);
  voters& all() const { return *voters_; }
  std::size_t size() const { return voters_->size(); }
  std::size_t majority() const { return size() / 2 + 1; }
  slip& of(std::size_t whom) { return *slips_[whom]; }
  const slip& of(std::size_t whom) const { return *slips_[whom]; }
  // At the first step: what has become of connections before is no failure of this call.
  void note_start();
  // It was tried since then to connect, and trying again will not help. What a call of before was told may be repaired.
  bool has_failed_for_good(std::size_t whom) const;
  // Ends a connection whose answer shows that it is not what its greeting found; a slip's reply is kept.
  void judge_error(time_point now, std::size_t whom);

private:
  voters* voters_;
  std::vector<std::unique_ptr<slip>> slips_{};
  std::vector<std::uint64_t> downs_before_{};
  bool has_news_ = false;
};

}  // namespace holdfast::engine
