// SPDX-License-Identifier: Apache-2.0
// The part of a session that src/client has threads and sockets for: connections, bytes, and doing what is due.
#include "engine_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::fuzz {

namespace {

constexpr std::size_t hearing = 2;  // The connection that messages come on.
constexpr int most_rounds = 300;

std::string greeting_of(server_time at, std::string_view run, bool needs_scripts) {
  const auto us = at.time_since_epoch().count();
  const auto bulk = [](std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); };
  std::string all =
      "*8\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\n"
      "master\r\n$7\r\nmodules\r\n*0\r\n";
  all += "*2\r\n" + bulk(std::to_string(us / 1'000'000)) + bulk(std::to_string(us % 1'000'000));
  all += bulk(fmt::format("# Server\r\nrun_id:{}\r\n", run));
  if (!needs_scripts) return all;
  all += fmt::format("*{}\r\n", script::count);
  for (std::size_t i = 0; i < script::count; ++i) all += ":1\r\n";
  return all;
}

}  // namespace

void session::cut(std::size_t which) {
  auto& of = wires_[which % 3];
  if (!of.channel->is_closed()) of.channel->on_closed(now_, {errc::connection_lost, "reset", false, false});
  drive();
}

void session::say(std::size_t which, std::string_view bytes, std::size_t piece) {
  auto& of = wires_[which % 3];
  while (!bytes.empty() && of.is_connected && of.mode != network::is_mute) {
    // As far as the next value's end, so that the ledger knows what was asked when it was answered.
    std::size_t size = bytes.size();
    bool is_whole = false;
    if (carries_requests(which % 3) && of.channel->is_ready()) {
      for (size = 0; size < bytes.size() && !is_whole;) {
        of.replies.feed(bytes.substr(size++, 1));
        if (const auto value = of.replies.next()) {
          ledger_.answered(wire_of(which % 3), *value);
          is_whole = true;
        }
      }
    }
    of.is_amid_reply = !is_whole;
    auto one = bytes.substr(0, size);
    bytes.remove_prefix(size);
    for (; !one.empty(); one.remove_prefix(std::min(piece, one.size()))) {
      of.channel->on_bytes(now_, one.substr(0, piece));
      if (of.channel->is_closed()) break;
    }
    drive();
  }
}

void session::say_at_once(wire on, std::string_view replies) {
  auto& of = wires_[static_cast<std::size_t>(on)];
  if (!of.channel->is_ready() || of.is_amid_reply || of.mode == network::is_mute) return;
  of.replies.feed(replies);
  while (const auto value = of.replies.next()) ledger_.answered(on, *value);
  of.channel->on_bytes(now_, replies);
  drive();
}

// ---- driving ----

void session::drive() {
  int rounds = 0;
  for (;; ++rounds) {
    require(rounds < most_rounds);  // Something to do at once, again and again, is done for ever.
    notice_cuts();
    keeper_.on_wake(now_);
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      (void)wires_[i].channel->on_wake(now_);
      notice_cuts();
      if (i != hearing || ear_.is_wanted()) connect(i);
    }
    unattended_.step_due(now_);
    for (std::size_t i = 0; i < wires_.size(); ++i) write(i);
    notice_cuts();
    const auto over = unattended_.take_over();
    for (const engine::call* flow : over) {
      const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& c) { return &c.flow() == flow; });
      require(found != calls_.end());
      auto ended = std::move(*found);
      calls_.erase(found);
      conclude(std::move(ended));
    }
    if (over.empty() && wake_at() > now_) break;
  }
  for (const auto& lease : std::exchange(lost_, {})) {
    if (ledger_.is_kept(lease->owner)) ledger_.lease_ended(lease->owner);
  }
  ledger_.begin_operation();
  check_time();
}

void session::notice_cuts() {
  for (std::size_t i = 0; i < wires_.size(); ++i) {
    if (!wires_[i].is_connected || !wires_[i].channel->is_closed()) continue;
    wires_[i].is_connected = false;
    if (carries_requests(i)) ledger_.cut(wire_of(i));
  }
}

void session::connect(std::size_t which) {
  auto& of = wires_[which];
  if (!of.channel->wants_connection(now_)) return;
  of.channel->on_connecting(now_);
  if (of.mode == network::hangs) return;
  if (of.mode == network::refuses) {
    return of.channel->on_closed(now_, {errc::cannot_connect, "Connection refused", false, true});
  }
  of.is_connected = true;
  of.is_amid_reply = false;
  of.replies = resp::reader{};
  of.channel->on_connected(now_);
  of.channel->output().clear();
  of.channel->on_bytes(now_, greeting_of(server_now(), run_, needs_scripts_ && which != hearing));
}

void session::write(std::size_t which) {
  auto& output = wires_[which].channel->output();
  if (output.empty()) return;
  if (carries_requests(which)) {
    ledger_.sent(wire_of(which), now_, output);
    if (const auto& open = ledger_.open(wire_of(which)); !open.empty() && !open.back().owner.empty()) {
      last_owner_ = open.back().owner;
    }
  }
  output.clear();
}

time_point session::wake_at() const {
  const time_point soonest = std::min({keeper_.wake_at(), wires_[0].channel->wake_at(), unattended_.wake_at()});
  return ear_.is_wanted() ? std::min(soonest, wires_[hearing].channel->wake_at()) : soonest;
}

}  // namespace holdfast::fuzz
