// SPDX-License-Identifier: Apache-2.0
// One connection's conversation, without the connection: greeting, requests and replies in order, NOSCRIPT, silence,
// the server's clock, and when to connect again. Bytes, time and random bits in; bytes, next wake-up and news out.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/backoff.hpp"
#include "core/server_clock.hpp"
#include "engine/durable.hpp"
#include "engine/epoch_watch.hpp"
#include "engine/greeting.hpp"
#include "engine/named_primary.hpp"
#include "resp/reader.hpp"
#include "resp/value.hpp"
#include "script/command.hpp"
#include "script/server_error.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

// Somebody who sent a request. Each request is answered by exactly one of the two calls, unless it was forgotten.
class reply_sink {
public:
  reply_sink() = default;
  reply_sink(const reply_sink&) = delete;
  reply_sink& operator=(const reply_sink&) = delete;

  // `sent_at`: when the request was handed over, before any byte of it was written.
  virtual void on_reply(time_point now, time_point sent_at, const resp::value& reply) = 0;
  // The connection ended first. Nobody knows whether the server saw the request.
  virtual void on_cut(time_point now) = 0;

protected:
  ~reply_sink() = default;

private:
  friend class channel;
  int open_requests_ = 0;
  std::uint64_t last_request_ = 0;  // Its number, while any is open.
};

// Somebody who wants to know how the connection fares, and what the server's clock does.
class channel_listener {
public:
  channel_listener() = default;
  channel_listener(const channel_listener&) = delete;
  channel_listener& operator=(const channel_listener&) = delete;

  virtual void on_ready(time_point now) = 0;
  // A connection could not be made, or a ready one ended (`was_ready`).
  virtual void on_down(time_point now, const connection_failure& failure, bool was_ready) = 0;
  virtual void on_clock_step(time_point now, duration step) = 0;
  // On a channel that hears_pushes: something that may be no reply. True: it is none.
  virtual bool on_push(time_point /*now*/, const resp::value& /*what*/) { return false; }

protected:
  ~channel_listener() = default;
};

//  state      | connected  | greeting done | bytes          | closed or failure        | silence with open requests
//  -----------+------------+---------------+----------------+--------------------------+---------------------------
//  closed     | invalid    | -             | invalid        | nothing                  | -
//  connecting | -> greeting| -             | invalid        | -> closed, on_down       | -> closed (server_silent)
//  greeting   | invalid    | -> ready      | greeting reads | -> closed, on_down       | -> closed (server_silent)
//  ready      | invalid    | -             | replies        | -> closed, on_cut to all | -> closed (server_silent)
//
// On a durable channel what may be granted or renewed is written with one WAIT behind all of it. Such a request's
// answer is kept until that one's answer and given out with it (confirmed()), in order; what else is asked is answered
// as ever:
//
//  answered by     | WAIT unanswered | WAIT says n          | WAIT is refused         | connection cut
//  ----------------+-----------------+----------------------+-------------------------+---------------
//  the script      | kept            | given out with n     | given out with that; if | on_cut
//                  |                 |                      | a new connection may    |
//                  |                 |                      | help: cut               |
//  NOSCRIPT        | sent by text, with a WAIT of its own, whatever the first one says    | on_cut
//
// Who frees a lock whose line is longer than one script sees is answered so, and lets it go on at once, again and again
// until somebody has it (src/script/go_on.lua): the channel does that by itself, whoever asked. Nobody waits for it.
//
// A request that nobody waits for any more keeps its slot: its late reply is matched and dropped (P30); but a leave is
// sent again after NOSCRIPT all the same, because it may be all that ends what was asked for. So one caller's
// time-out never ends the connection of the others; only silence does, after max(3 x p99, 500 ms). While WAIT is the
// next to be answered its own time comes on top, and what stood behind it says nothing about round trips.
class channel {
public:
  struct settings {
    credentials who;
    int database = 0;
    duration connect_timeout = std::chrono::seconds{2};  // For each of look-up, TCP, TLS and greeting.
    duration least_silence = std::chrono::milliseconds{500};
    bool needs_scripts = true;
    bool hears_pushes = false;
    epoch_watch::settings epoch{};
    durability durable{};  // One over which nothing is granted (epoch.may_be_unknown) comes up without WAIT, too.
    std::shared_ptr<const named_primary> primary{};  // Null: one server, which is what it is.
    // Of a node of a cluster: its id there; and who serves what should be asked again. Must not call back. Empty: it is
    // none.
    std::string node_id{};
    std::function<void()> redirected{};
  };

  channel(settings, base::random_source& rng, channel_listener& listener);

  // From the driver. `failure` explains the end of a connection; it reaches the listener and every open request.
  bool wants_connection(time_point now) const;
  void on_connecting(time_point now);
  // While connecting: the next step towards it has begun, and has as much time as the one before.
  void on_nearer(time_point now);
  // `term`: as of mind_primary().
  void on_connected(time_point now, named_primary::term_number term = 0);
  void on_bytes(time_point now, std::string_view bytes);
  void on_closed(time_point now, connection_failure failure);
  // Notices silence. True: the driver must close the connection; the channel has already called on_closed itself.
  [[nodiscard]] bool on_wake(time_point now);
  time_point wake_at() const;
  // True after on_bytes met something that no server of ours says: close, as for on_wake.
  [[nodiscard]] bool must_close() const { return must_close_; }

  // Bytes to be written, in order. The driver takes them out; what goes out together has one WAIT.
  std::string& output() {
    if (owes_wait_) pay_wait();
    return output_;
  }

  // A connection is wanted while this is set (or requests are open); `to_give_back`: by somebody who takes back a lock,
  // perhaps among others, and is served where no grant would count (mind_primary()).
  void set_demand(bool is_wanted, bool to_give_back = false);
  bool is_ready() const { return takes_back() && !only_takes_back_; }
  // As is_ready(), for whoever only gives back.
  bool takes_back() const { return state_ == state::ready; }
  bool is_closed() const { return state_ == state::closed; }
  bool was_ever_ready() const { return was_ever_ready_; }
  bool has_open_requests() const { return !open_.empty(); }
  // It lets a line go on just now.
  bool is_going_on() const { return going_on_ > 0; }
  std::size_t open_requests() const { return open_.size(); }
  const connection_failure& last_failure() const { return last_failure_; }
  int connect_attempts() const { return connect_attempts_; }
  // How often what was sent and forgotten, or a leave that was asked and forgotten, was refused: it had no effect, or
  // will be sent again behind what came after.
  std::uint64_t refused_unheard() const { return refused_unheard_; }
  // Of those: how often it was sent again, after NOSCRIPT.
  std::uint64_t sent_again_unheard() const { return sent_again_unheard_; }

  // Is the server a node of a cluster, so that others may serve what it does not?
  bool is_in_cluster() const { return static_cast<bool>(settings_.redirected); }
  // What an error of the server's means on this connection. Where others name the primary, or who serves a slot, that
  // it is not this one (any more) is no mistake of anybody: there is none until they have named the next.
  script::classified judge(std::string_view text) const;

  // Of the server that was greeted last. Empty where it does not say.
  const std::string& run_id() const { return greeting_.run_id(); }

  // The server's time at `now`; only when is_ready().
  server_time server_now(time_point now) const { return clock_.at(now); }
  // Of the last answer; zero: there was none.
  duration round_trip() const {
    return round_trips_seen_ == 0 ? duration{0} : round_trips_[(round_trips_seen_ - 1) % round_trips_.size()];
  }
  // Silence is called after max(3 x p99, this).
  void set_least_silence(duration least) { settings_.least_silence = least; }
  // And no later than after max(1.5 x p99, this), if that is more than the least.
  void set_most_silence(duration most) { most_silence_ = most; }
  // As settings::connect_timeout.
  void set_connect_timeout(duration most) { settings_.connect_timeout = most; }
  // Something in an answer shows that the server is not what the greeting found: end the connection.
  void hang_up(time_point now, const connection_failure& failure);

  // ---- the quarantine (engine/epoch_watch.hpp) ----
  // Of a grant that was just answered, to a request that was sent then.
  epoch_watch::worth worth_of_grant(time_point sent_at) const { return epoch_.of_grant(sent_at); }
  // Until when nothing may be granted; in the past: no longer. acquire.lua must not be sent before.
  time_point quarantined_until() const { return epoch_.until(); }
  std::optional<quarantine> in_quarantine(time_point now) const { return epoch_.in_force(now); }
  // Asks again whether it is over, if the last answer is old. Only when is_ready().
  void ask_epoch_if_due(time_point now);

  // ---- replicas (engine/durable.hpp) ----
  // Of the reply that is just being given out.
  const confirmation& confirmed() const { return confirmed_; }
  duration wait_timeout() const { return settings_.durable.timeout; }

  // ---- which server is the primary (engine/named_primary.hpp) ----
  // Until when a grant or a renewal counts that this connection has answered.
  time_point counts_until() const { return settings_.primary ? settings_.primary->until(term_) : never; }
  // Does a grant count whose answer is read now? A renewal, that was sent before `renewals_from`, does not. Clients
  // with a larger max_ttl than ours are reckoned with as far as the server knows of them.
  bool counts_grant(time_point sent_at, time_point now) const {
    return !settings_.primary || settings_.primary->counts_grant(term_, sent_at, now);
  }
  time_point renewals_from(time_point now) const {
    return settings_.primary ? settings_.primary->renewals_from(term_, epoch_.longest_hold(now)) : time_point{};
  }
  duration moving_takes(time_point now) const {
    return settings_.primary ? settings_.primary->moving_takes(epoch_.longest_hold(now)) : duration{0};
  }
  duration longest_moving_takes() const {
    return settings_.primary ? settings_.primary->longest_moving_takes() : duration{0};
  }
  // `term`: of the server that the connection leads to or is being made to, 0 before that is known. Ends it when that
  // is not the primary any more, or has not been named for so long that a grant would not count; one over which nothing
  // is granted (epoch.may_be_unknown), when a renewal would be worth little. So long is it there for those who give
  // back, too, and is_ready() for nobody else: until they have gone. True: the driver must close it.
  [[nodiscard]] bool mind_primary(time_point now, named_primary::term_number term);
  // Likewise, of one that stands and by anybody: what is asked over one that ends is cut off, and may have been done.
  // The driver finds it closed.
  void mind_primary(time_point now) {
    if (state_ == state::ready) (void)mind_primary(now, term_);
  }

  // A reply carried this; notices steps.
  void observe_clock(server_time server_now, time_point sent_at, time_point now);
  // What another connection to the same server has seen of its clock last, so that a step between the two is noticed.
  void learn_clock(const core::server_clock& seen) {
    if (clock_.is_older_than(seen)) clock_ = seen;
  }
  const core::server_clock& clock() const { return clock_; }

  // Only when is_ready(). `from` stays alive until it was answered or forgotten. What may be granted something goes out
  // behind a question about the epoch when the last one is old; what goes out in quarantine says so (P21).
  enum class hope { grant, little };  // little: a heartbeat, which is seldom granted anything.
  void send(time_point now, script::command what, reply_sink& from, hope what_for = hope::grant);
  void send_raw(time_point now, std::string_view encoded, reply_sink& from);
  void send_and_forget(time_point now, script::command what);
  // Only when is_ready(). The server learns the script now: many requests that are sent before it is found out that
  // one of them is unknown would all be sent again, and late. Once on a connection.
  void load(time_point now, script::id what);
  // How many of its requests are unanswered.
  static int open_requests(const reply_sink& of) { return of.open_requests_; }
  // Is its last request the one that is answered next?
  bool is_next(const reply_sink& of) const { return !open_.empty() && open_.front().number == of.last_request_; }
  // Its replies are dropped from now on; the slots stay.
  void forget(reply_sink& who);

private:
  enum class state { closed, connecting, greeting, ready };

  struct epoch_sink final : reply_sink {
    explicit epoch_sink(channel& c) : of{&c} {}
    void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
      of->on_epoch(now, sent_at, reply);
    }
    void on_cut(time_point /*now*/) override {}
    channel* of;
  };
  struct slot {
    enum class sort : unsigned char { plain, durable, wait };
    reply_sink* from = nullptr;  // Null: forgotten.
    time_point sent_at{};
    std::optional<script::command> what{};  // To send it again after NOSCRIPT, and for the line to go on behind it.
    std::uint64_t number = 0;               // On this connection.
    sort is = sort::plain;
    bool is_text = false;     // It was sent by its text, so that the server knows it.
    bool is_refused = false;  // The connection ends, and this came with the reason.
    unsigned char times = 0;  // So often has the line been let go on before.
  };
  // Answered, and not yet by WAIT.
  struct kept {
    reply_sink* from;
    time_point sent_at;
    time_point came_at;
    resp::value reply;
    std::uint64_t number;
  };

  void on_greeting_reply(time_point now, const resp::value& reply);
  void on_request_reply(time_point now, const resp::value& reply);
  void on_epoch(time_point now, time_point sent_at, const resp::value& reply);
  void find_refused(resp::value why);
  void ask_epoch(time_point now);
  void mind_quarantine(time_point now, script::command& what, hope what_for);
  void send_again(slot& refused);
  void send_unasked(time_point now, script::command what, unsigned char times);
  void let_line_go_on(time_point now, const slot& answered, const resp::value& reply);
  void fail(time_point now, const connection_failure& failure);
  void note_round_trip(duration round_trip);
  time_point silence_ends() const;
  bool is_of_use(time_point now, named_primary::term_number term);
  // A request, and the slot for its answer. Without memory there is neither: what is written and has none would take
  // the answer to the next one (C5). `write` appends to the output, and is not kept.
  template <class Write>
  void request(slot made, Write write) {
    const auto written = output_.size();
    made.number = sent_ + 1;
    open_.push_back(std::move(made));
    try {
      write(open_.back());
    } catch (...) {
      open_.pop_back();
      output_.resize(written);
      throw;
    }
    const auto& stands = open_.back();
    sent_ = stands.number;
    if (stands.is == slot::sort::durable) owes_wait_ = true;
    if (stands.times > 0) ++going_on_;
    if (!stands.from) return;
    ++stands.from->open_requests_;
    stands.from->last_request_ = sent_;
  }
  slot pop();
  slot::sort sort_of(const script::command& what, hope what_for) const;
  void pay_wait();
  void on_wait_reply(time_point now, const resp::value& reply);
  reply_sink* pop_kept(kept& into);

  settings settings_;
  base::random_source* rng_;
  channel_listener* listener_;
  state state_ = state::closed;
  bool has_demand_ = false;
  bool gives_back_ = false;       // Some of that is by one who only gives back.
  bool only_takes_back_ = false;  // The connection: nobody else is served any more, nor will be.
  bool must_close_ = false;
  bool was_ever_ready_ = false;
  int useless_in_a_row_ = 0;  // Connections that greeted and ended before they answered anything.
  int connect_attempts_ = 0;
  named_primary::term_number term_ = 0;
  time_point state_since_{};
  time_point may_connect_at_{};
  time_point heard_at_{};
  bool was_asleep_ = false;  // Nobody took in what is read now until its time was up: that says nothing of the server.
  core::backoff reconnect_{std::chrono::milliseconds{20}, std::chrono::seconds{1}};
  greeting greeting_;
  epoch_watch epoch_;
  epoch_sink epoch_answers_{*this};
  resp::reader reader_;
  core::server_clock clock_;
  std::string output_;
  std::deque<slot> open_;
  std::deque<kept> kept_;
  confirmation confirmed_;
  bool owes_wait_ = false;
  int going_on_ = 0;
  time_point wait_ended_at_{};  // The last one.
  time_point came_at_ = never;  // What is being given out, if it was kept.
  std::uint64_t sent_ = 0;
  std::uint64_t refused_unheard_ = 0;
  std::uint64_t sent_again_unheard_ = 0;
  // The request with which the text of a script was sent last; zero: not on this connection.
  std::array<std::uint64_t, script::count> text_sent_{};
  std::array<duration, 128> round_trips_{};
  std::size_t round_trips_seen_ = 0;
  duration round_trip_p99_{0};
  duration most_silence_ = duration::max();
  std::optional<resp::value> refusal_{};  // To those that are refused.
  connection_failure last_failure_;
};

}  // namespace holdfast::engine
