// SPDX-License-Identifier: Apache-2.0
// One thing that a caller wants of the server and waits for: an acquire, a release, a question. A call lives on its
// caller's stack, hears of its replies and of the connection, and is over when is_over() says so.
//
// Ten thousand may wait at once: what knows of them links them where they are (Boost.Intrusive) instead of keeping
// lists of them, which also spares a call its allocations.
#pragma once

#include "engine/channel.hpp"
#include "engine/line_mates.hpp"
#include "script/server_error.hpp"

#include <holdfast/names.hpp>

#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/set_hook.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

class call;
class hints;

struct call_index;

// Whoever wants to know that something happened to a call.
class call_listener {
public:
  call_listener() = default;
  call_listener(const call_listener&) = delete;
  call_listener& operator=(const call_listener&) = delete;
  virtual void on_news(call& of) = 0;

protected:
  ~call_listener() = default;
};

// What a driver keeps for a call beside it, so that it finds that again when it is given the call.
class call_companion {
protected:
  ~call_companion() = default;
};

// What every call has. Not thread-safe: the driver calls everything under one mutex.
class call : public reply_sink {
public:
  virtual ~call() = default;

  // Does what is due. Called at the start, at wake_at(), and when a connection became ready.
  virtual void step(time_point now) = 0;
  virtual void on_no_connection(time_point now, const connection_failure& failure) = 0;
  // The connection is ready (again): all of its calls are told this first, and do nothing.
  virtual void on_new_connection() {}
  virtual void on_connected(time_point now) { step(now); }
  // Said on this process's channel (engine/hints.hpp), perhaps to this call.
  virtual void on_hint(time_point /*now*/, std::string_view /*owner*/, server_time /*said_at*/, duration /*look_in*/) {}
  virtual void on_hearing_changed(time_point /*now*/) {}
  virtual time_point wake_at() const = 0;
  virtual bool is_over() const = 0;
  // Is nothing granted by it? It does not change.
  virtual bool gives_back() const { return false; }
  // There is nothing more to do for it here: it is over, or goes on at another server.
  bool is_done() const { return is_moved_ || is_over(); }
  // It is started no longer, or soon; index() still knows it. Perhaps twice.
  virtual void on_stop() {}

  // ---- where several servers share the keys (engine/cluster_slots.hpp) ----
  // Which part of them it is about. It does not change; none: it stays with its server.
  static constexpr int no_slot = -1;
  void set_slot(int slot) { slot_ = slot; }
  int slot() const { return slot_; }
  // Another server serves its slot now. What is unanswered is taken for cut off.
  void leave_server(time_point now);
  bool is_moved() const { return is_moved_ && !is_over(); }
  // There, once it is_moved() and stopped: before it is started again. `ear`: of that server.
  void go_on(channel& to, hints& ear, time_point now);

  // The last words of the server, or of the system about the connection; for people.
  std::string server_text() const { return server_text_ ? *server_text_ : std::string{}; }

  // Set by the driver: told after every event that reached this call. Null: nobody.
  void set_listener(call_listener* who) { listener_ = who; }
  void tell_news() {
    if (listener_) listener_->on_news(*this);
  }
  // Likewise the driver's.
  void set_companion(call_companion* what) { companion_ = what; }
  call_companion* companion() const { return companion_; }

protected:
  explicit call(channel& to) : channel_{&to} {}

  // Its request is unanswered, and nobody will hear of the answer.
  virtual void on_left(time_point now) = 0;
  virtual void on_going_on(time_point /*now*/, hints& /*ear*/) {}

  channel& to() const { return *channel_; }
  void note(const std::string& text) { server_text_ = std::make_unique<const std::string>(text); }
  void forget_words() { server_text_.reset(); }
  // From now on hints for this owner id, and for no other, reach the call; only while it is started.
  void expect_hints_as(const owner_id& who);
  // Who expects hints as this one; null: nobody.
  call* find_by_owner(const owner_id& who) const;
  // Of the caller that it is started with; null before and after.
  call_index* index() const { return index_; }
  // Notes the server's error and says what it means. That another node of a cluster serves the slot passes, once we
  // know which, and so does that whoever was named the primary is none any more; elsewhere it is for good. One that
  // contradicts the greeting ends the connection: the next one's greeting will say what is wrong.
  script::classified judge_error(time_point now, const resp::server_error& error);

private:
  friend class caller;
  friend class unattended;
  friend class hint_index;

  void expect_no_hints();

  channel* channel_;
  int slot_ = no_slot;
  bool is_moved_ = false;
  std::unique_ptr<const std::string> server_text_{};
  call_listener* listener_ = nullptr;
  call_companion* companion_ = nullptr;
  // The caller's: where it stands in its list, and in its index.
  boost::intrusive::list_member_hook<> listed_{};
  call_index* index_ = nullptr;
  std::optional<owner_id> expected_{};
  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> by_expected_{};
  // Those of `unattended`: zero when it is not among them.
  std::uint64_t number_ = 0;
  time_point on_agenda_at_ = never;
  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> on_agenda_{};
};

// Which call stands in line under which owner id, so that a hint finds the one that it is for among ten thousand.
class hint_index {
public:
  // Under the owner id that it expects hints as, which does not change while it is here.
  void add(call& what) { calls_.insert(what); }
  void remove(call& what) { calls_.erase(calls_.iterator_to(what)); }
  // Null: nobody here is called so.
  call* find(std::string_view owner) {
    const auto found = calls_.find(owner);
    return found == calls_.end() ? nullptr : &*found;
  }

private:
  struct by_expected {
    using type = std::string_view;
    type operator()(const call& what) const { return what.expected_->hex(); }
  };
  // Random ids: whether one is there twice needs no asking.
  boost::intrusive::multiset<
      call,
      boost::intrusive::member_hook<call, boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>,
                                    &call::by_expected_>,
      boost::intrusive::key_of_value<by_expected>, boost::intrusive::constant_time_size<false>>
      calls_;
};

// How the calls of one connection find each other.
struct call_index {
  hint_index by_owner;
  line_mates by_line;
};

}  // namespace holdfast::engine
