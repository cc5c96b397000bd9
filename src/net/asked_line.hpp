// SPDX-License-Identifier: Apache-2.0
// A connection over which a watch puts one question to one server, again and again; it stays open in between. What is
// asked and answered is `Talk`'s (engine/cluster_talk.hpp, say), when is the watch's.
#pragma once

#include "base/time.hpp"
#include "net/clock.hpp"
#include "net/endpoint.hpp"
#include "net/link.hpp"

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::net {

// How long a round of a watch waits, and a server has for an answer.
inline constexpr duration answer_patience = std::chrono::seconds{1};

// Talk: begin(), ask(out), is_asked(), on_bytes() -> optional<answer_type>; is_well(answer): the connection may stay;
// failed(why): what the answer is then.
template <class Talk>
class asked_line {
public:
  using answer_type = typename Talk::answer_type;

  asked_line(const endpoint& where, Talk talk) : link_{where}, talk_{std::move(talk)} {}

  // A question or a connection that is still on its way is left so: from afar either takes longer than a round.
  void ask() {
    const time_point now = boottime_now();
    collect(POLLIN);  // It may have answered late, or have gone away.
    answer_.reset();
    if (talk_.is_asked() && now - asked_at_ >= answer_patience) close();
    if (is_opening() && now - opened_at_ >= connection_patience) close();
    if (talk_.is_asked() || is_opening()) return;
    if (link_.is_open()) return put_question();
    opened_at_ = now;
    note(link_.open());
  }

  void collect(short happened) {
    if (happened == 0 || link_.is_closed()) return;
    if (!link_.is_open()) {
      const auto before = link_.steps();
      const auto progress = link_.advance();
      if (link_.steps() != before) opened_at_ = boottime_now();
      return note(progress);
    }
    if (happened & POLLOUT) flush();
    if (!(happened & ~POLLOUT) || !link_.is_open()) return;
    std::string bytes;
    const bool is_alive = link_.read(bytes);
    if (auto answer = talk_.on_bytes(bytes)) {
      const bool is_well = Talk::is_well(*answer);
      answer_ = std::move(answer);
      if (!is_well) close();
    }
    if (!is_alive) end(link_.failure());
  }

  pollfd poll_for() const { return link_.poll_for(!outgoing_.empty()); }
  // Of this round.
  const std::optional<answer_type>& answer() const { return answer_; }
  time_point asked_at() const { return asked_at_; }
  // Was it the connection that failed, because somebody said no?
  bool is_refused() const { return is_refused_; }

private:
  // For a name, again for a connection, again for TLS: more round trips than one.
  static constexpr duration connection_patience = std::chrono::seconds{5};

  bool is_opening() const { return !link_.is_open() && !link_.is_closed(); }

  void note(link::progress progress) {
    if (progress == link::progress::failed) return end(link_.failure());
    if (progress != link::progress::open) return;
    is_refused_ = false;
    talk_.begin();
    put_question();
  }

  void put_question() {
    asked_at_ = boottime_now();
    talk_.ask(outgoing_);
    flush();
  }

  void flush() {
    if (outgoing_.empty()) return;
    if (link_.write(outgoing_) == link::written::failed) end({errc::connection_lost, "the connection broke"});
  }

  void close() {
    link_.close();
    talk_.begin();
    outgoing_.clear();
  }

  void end(const engine::connection_failure& why) {
    const engine::connection_failure reason = why;  // The link's own goes with it.
    close();
    is_refused_ = reason.is_refusal;
    if (answer_) return;
    answer_ = Talk::failed(reason);
  }

  link link_;
  Talk talk_;
  std::string outgoing_{};
  time_point opened_at_{};
  time_point asked_at_{};
  bool is_refused_ = false;
  std::optional<answer_type> answer_{};
};

}  // namespace holdfast::net
