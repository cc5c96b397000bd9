// SPDX-License-Identifier: Apache-2.0
// One request whose reply is its asker's to read: inspect, break, SCAN, INFO, PING.
#pragma once

#include "engine/call.hpp"
#include "script/command.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast::engine {

// Any one request whose reply the caller reads itself. Repeated after a cut only if that is `allowed`; what changes
// something and is then refused may have been done all the same, and ends as reply_lost (C5).
//
// `timed`: it changes what a later request may change again, as resize does, so no copy of it may take effect behind
// the answer (B72). Each copy says until when it may, and an answer counts that was given later than that of all copies
// whose connection ended before it; else it is asked again.
class question final : public call {
public:
  enum class repeat { allowed, refused, timed };

  question(channel& to, script::command what, repeat how, time_point give_up_at);
  // Something that only reads, in bytes.
  question(channel& to, std::string encoded, repeat how, time_point give_up_at);

  void step(time_point now) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  time_point wake_at() const override { return !is_asked_ && to().is_ready() ? std::min(ask_at_, wake_at_) : wake_at_; }
  bool is_over() const override { return reply_.has_value() || failure_.has_value(); }
  void on_left(time_point now) override;

  // Only when is_over(): a reply, which may be the server's error, or why there is none.
  const std::optional<resp::value>& reply() const { return reply_; }
  errc failure() const { return *failure_; }
  int attempts() const { return attempts_; }
  duration round_trip() const { return round_trip_; }

private:
  void ask(time_point now);
  // Whether a copy may still take effect behind this answer, or had none; it is asked again then.
  bool is_too_early(time_point now, time_point sent_at, const resp::value& reply);
  // By a copy whose connection ended. Who only wants to read has nothing to be unsure of.
  bool may_have_been_done() const { return is_cut_ && command_ && !script::only_reads(*command_); }

  std::optional<script::command> command_;
  std::string encoded_;
  repeat how_;
  time_point give_up_at_;
  time_point wake_at_;
  time_point ask_at_{};
  bool is_asked_ = false;
  bool is_cut_ = false;
  server_time not_after_{};   // Of the copy that is asked, where they are timed.
  server_time left_until_{};  // Of those whose connection ended.
  int attempts_ = 0;
  int refusals_ = 0;
  errc last_news_ = errc::server_silent;
  duration round_trip_{0};
  std::optional<resp::value> reply_{};
  std::optional<errc> failure_{};
};

}  // namespace holdfast::engine
