// SPDX-License-Identifier: Apache-2.0
// What one connection knows of the server's epoch (src/script/epoch.lua): whether the server may have forgotten locks,
// and until when nothing may be granted for that. Its own file, because it is the whole of the quarantine on our side:
// the channel asks it before it sends, and who was granted something asks it before he believes it.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"
#include "script/command.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::engine {

// The server counts what remains of a quarantine by its clock, and we by ours.
duration by_our_clock(std::chrono::milliseconds remaining);

// Why nothing is granted, and until when, by our clock.
struct quarantine {
  time_point began_at;
  time_point ends_at;
  bool is_promotion;  // Else the server restarted.
};

//  the last answer     | acquire, wait, look and   | what they are granted | release, leave, break, ...
//                      | inspect                   |                       |
//  --------------------+---------------------------+-----------------------+-------------------------------------
//  nothing to wait for | as ever                   | counts                | as ever
//  the same, 1 s old   | behind a question (P20),  | counts; of a          | as ever
//                      | but not for a heartbeat   | heartbeat: look again |
//  quarantine          | a place in line only,     | does not count        | the line does not move
//                      | behind a question         |                       |
//  none, or an error   | behind a question         | does not count        | as ever; the keeper's: does not move,
//                      |                           |                       | and asks again, once a second
class epoch_watch {
public:
  struct settings {
    std::string prefix{};               // Of our keys. Empty: the server is trusted, and never asked.
    std::chrono::milliseconds hold{0};  // How long a lease that it has forgotten may live on.
    bool may_be_unknown = false;        // Nothing is ever granted over this connection: it is of use all the same.
    // Whether the client ever asked for a lock. Until then others need not wait for its leases. Null: it has.
    std::shared_ptr<const std::atomic<bool>> wants_locks{};
    // Of a node of a cluster: the number in its key, whose slot it serves. Null: it has no such number.
    std::shared_ptr<const std::atomic<int>> tag{};
    // Is it certain that the server, now that there is a connection, can have forgotten no lock whose holder lives, as
    // in its first run? Empty: it is not.
    std::function<bool()> is_first_run{};
  };

  explicit epoch_watch(settings s) : settings_{std::move(s)} {}

  bool is_on() const { return !settings_.prefix.empty(); }
  bool may_be_unknown() const { return settings_.may_be_unknown; }

  // A new connection stands: nothing is known.
  void begin();
  // Appends the question to `out`. By text, so that no NOSCRIPT can put its answer behind those that wait for it.
  void ask(std::string& out, time_point now);
  // Before a request that may be granted something; before a heartbeat, which seldom is.
  bool must_ask(time_point now) const { return is_on() && (now - asked_at_ >= fresh || must_ask_again()); }
  bool must_ask_again() const { return is_on() && !is_good_ && unanswered_ == 0; }
  // Nothing is ever granted over this connection, so nothing else would ask again, and each release of it would leave
  // its line to a heartbeat.
  bool must_ask_at_last(time_point now) const {
    return is_on() && may_be_unknown() && !is_answered_ && unanswered_ == 0 && now - asked_at_ >= fresh;
  }
  // Before anything: the server is yet to hear how long a lease of ours may live on (P18). We only looked until now; or
  // its slots have moved, and its key has another number, where who only renews says it, too.
  bool must_say_more() const {
    return is_on() && ((settings_.tag && *settings_.tag != asked_tag_) ||
                       (asked_as_ == script::asker::onlooker && who_asks() == script::asker::holder));
  }
  // The answer to the question that was asked at `asked_at`. False: it says nothing.
  bool on_answer(time_point now, time_point asked_at, const resp::value& reply);

  // What is a grant worth whose answer has come now, to a request that was sent at `sent_at`? Answers come in the order
  // of the requests. unconfirmed: ask once more, behind a question.
  enum class worth { counts, unconfirmed, nothing };
  worth of_grant(time_point sent_at) const {
    if (!is_on()) return worth::counts;
    if (!is_good_) return worth::nothing;
    return sent_at - good_from_ < fresh ? worth::counts : worth::unconfirmed;
  }
  // Empty: none that is known.
  std::optional<quarantine> in_force(time_point now) const;
  // The longest that a lease of any client may live on, as far as the server knows; it says so while it matters, in a
  // quarantine. Zero: nothing is known of any, or it does not matter. The longest duration: it has not been asked.
  duration longest_hold(time_point now) const;
  // Must nothing be granted, for all that is known?
  bool is_quarantine(time_point now) const { return is_on() && (now < until_ || (may_be_unknown() && !is_answered_)); }
  // Until then; in the past: no longer.
  time_point until() const { return until_; }

private:
  // So long is an answer good for (P20): INFO in a script costs the server as much as an acquire.
  static constexpr duration fresh = std::chrono::seconds{1};

  script::asker who_asks() const {
    return settings_.wants_locks && !*settings_.wants_locks ? script::asker::onlooker : script::asker::holder;
  }

  settings settings_;
  time_point asked_at_{};
  int asked_tag_ = 0;
  script::asker asked_as_ = script::asker::holder;
  int unanswered_ = 0;
  bool is_first_run_ = false;
  bool is_answered_ = false;
  bool is_good_ = false;
  bool is_promotion_ = false;
  time_point good_from_{};  // When the question was asked that was answered last.
  time_point began_at_{};
  time_point until_{};
};

}  // namespace holdfast::engine
