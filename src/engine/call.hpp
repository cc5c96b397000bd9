// SPDX-License-Identifier: Apache-2.0
// One thing that a caller wants of the server and waits for: an acquire, a release, a question. A call lives on its
// caller's stack, hears of its replies and of the connection, and is over when is_over() says so.
#pragma once

#include "engine/channel.hpp"
#include "engine/line_mates.hpp"
#include "script/server_error.hpp"

#include <holdfast/names.hpp>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace holdfast::engine {

class call;

// Which call stands in line under which owner id, so that a hint finds the one that it is for among ten thousand.
class hint_index {
public:
  void add(const owner_id& who, call& what) { calls_.emplace(who.hex(), &what); }
  void remove(const owner_id& who) {
    if (const auto found = calls_.find(who.hex()); found != calls_.end()) calls_.erase(found);
  }
  // Null: nobody here is called so.
  call* find(std::string_view owner) const {
    const auto found = calls_.find(owner);
    return found == calls_.end() ? nullptr : found->second;
  }

private:
  // Views of the ids that the calls keep themselves.
  std::unordered_map<std::string_view, call*> calls_;
};

// What every call has. Not thread-safe: the driver calls everything under one mutex.
class call : public reply_sink {
public:
  virtual ~call() = default;

  // Does what is due. Called at the start, at wake_at(), and when a connection became ready.
  virtual void step(time_point now) = 0;
  virtual void on_no_connection(time_point now, const connection_failure& failure) = 0;
  // The connection is ready (again).
  virtual void on_connected(time_point now) { step(now); }
  // Said on this process's channel (engine/hints.hpp), perhaps to this call.
  virtual void on_hint(time_point /*now*/, std::string_view /*owner*/, server_time /*said_at*/, duration /*look_in*/) {}
  virtual void on_hearing_changed(time_point /*now*/) {}
  virtual time_point wake_at() const = 0;
  virtual bool is_over() const = 0;
  // It is started no longer; mates() still knows it.
  virtual void on_stop() {}

  // The last words of the server, or of the system about the connection; for people.
  const std::string& server_text() const { return server_text_; }

  // Set by the driver: told after every event that reached this call.
  std::function<void()> on_news{};

protected:
  explicit call(channel& to) : channel_{&to} {}

  channel& to() const { return *channel_; }
  void note(const std::string& text) { server_text_ = text; }
  // From now on hints for this owner id, and for no other, reach the call; only while it is started.
  void expect_hints_as(const owner_id& who);
  // Who expects hints as this one; null: nobody.
  call* find_by_owner(const owner_id& who) const { return hints_ ? hints_->find(who.hex()) : nullptr; }
  // Of the caller that it is started with; null before and after.
  line_mates* mates() const { return mates_; }
  // Notes the server's error and says what it means. One that contradicts the greeting ends the connection: the next
  // one's greeting will say what is wrong.
  script::classified judge_error(time_point now, const resp::server_error& error);

private:
  friend class caller;
  friend class unattended;

  channel* channel_;
  std::string server_text_;
  // The caller's: where it stands in its list, and in its index.
  std::optional<std::list<call*>::iterator> listed_{};
  hint_index* hints_ = nullptr;
  line_mates* mates_ = nullptr;
  std::optional<owner_id> expected_{};
  // Those of `unattended`: zero when it is not among them.
  std::uint64_t number_ = 0;
  time_point on_agenda_at_ = never;
};

}  // namespace holdfast::engine
