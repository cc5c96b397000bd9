// SPDX-License-Identifier: Apache-2.0
// An operator of a quorum who replaces its list of servers, as `holdfast quorum replace` does: what is done next is for
// engine::list_replacement to say; looking, writing and waiting are done here (src/client/quorum_replace.cpp).
#pragma once

#include "canary.hpp"
#include "event_queue.hpp"
#include "model_server.hpp"
#include "quorum/server_list.hpp"
#include "seeded_random.hpp"
#include "world_time.hpp"

#include "engine/list_replacement.hpp"
#include "script/reply.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

class quorum_replace {
public:
  struct settings {
    server_list from;
    server_list to;
    std::chrono::milliseconds max_ttl;
    std::int64_t clock_ppm;
    duration slowest;         // What he asks takes as long.
    int unreachable_percent;  // Each of the servers, for him alone.
    canary_switch planted = canary_switch::none;
    bool reopen = false;  // `--reopen`.
  };
  struct hooks {
    // What a server said to a command of his.
    std::function<void(std::size_t node, const std::string& name, const resp::value& reply)> on_answer{};
    // A server keeps this record now, which he has written.
    std::function<void(std::size_t node, const script::quorum_record&)> on_written{};
    std::function<void(std::chrono::milliseconds)> on_wait{};
    // None: it is done; else the words with it. Once, and not behind kill().
    std::function<void(errc, const std::string& why)> on_end{};
  };
  // It must outlive what it has begun.
  quorum_replace(event_queue& events, std::deque<model_server>& servers, settings what, seeded_random rng, hooks tell);

  void begin() { go_on(); }
  // Nothing more comes of it, but what is under way.
  void kill() { is_over_ = true; }
  bool is_over() const { return is_over_; }

private:
  using flow = engine::list_replacement;

  void go_on();
  void later(duration wait, std::function<void()> what);
  duration way();
  std::size_t node_of(std::size_t at) const;
  bool answers(std::size_t at) const;
  resp::value operate(std::size_t at, std::initializer_list<std::string> words);
  void look(std::size_t at);
  std::optional<script::record_reply> ask(const flow::write& what);
  void act(const flow::look_at_all&);
  void act(const flow::look& what);
  void act(const flow::write& what);
  void act(const flow::wait& what);
  void act(const flow::tell_away&) { go_on(); }
  void act(const flow::tell_goes_on&) { go_on(); }
  void act(const flow::failure& what) { end(what.code, what.why.why); }
  void act(const flow::done&) { end({}, {}); }
  void end(errc how, const std::string& why);

  event_queue* events_;
  std::deque<model_server>* servers_;
  settings what_;
  seeded_random rng_;
  hooks tell_;
  flow flow_;
  std::vector<bool> is_cut_off_{};  // From which of the flow's members.
  std::size_t looks_ = 0;           // Under way.
  bool is_over_ = false;
};

}  // namespace holdfast::sim
