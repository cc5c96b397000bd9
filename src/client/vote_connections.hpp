// SPDX-License-Identifier: Apache-2.0
// The connections to the servers of a quorum, driven by the calling threads. As command_connection, for one server:
// whoever calls when nobody drives leads, and drives for all who called meanwhile. Its own class, because here each
// call speaks to all connections, is over when a majority has answered, and leaves the others' answers behind (B56):
// those are read by whoever leads next, and dropped.
//
//  who leads | a call starts | its answer is in
//  ----------+---------------+---------------------------------------------
//  nobody    | its caller    | -
//  a caller  | sleeps        | is woken; if it led, the next who sleeps leads
#pragma once

#include "client/connection.hpp"
#include "engine/quorum_call.hpp"
#include "net/event_fd.hpp"

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class vote_connections {
public:
  struct server {
    std::string name;
    net::endpoint where;
    engine::channel::settings how;
    engine::voter::hooks tell;
  };
  vote_connections(std::vector<server> servers, base::random_source& rng);

  // Runs a call to its end on the calling thread. `cancel` asks it to end early.
  void run(engine::quorum_call& what, const std::stop_token& cancel = {});

  // For making a call; only a call that runs touches them.
  engine::voters& all() { return voters_; }

  // Of each server, in order.
  struct state {
    std::string name;
    std::string trouble;  // Empty: none.
    bool is_ready;
    std::optional<engine::quarantine> quarantine;
    std::string run_id;
    core::server_clock clock;
  };
  std::vector<state> states();

private:
  struct member {
    engine::quorum_call* what;
    std::condition_variable news{};
    bool is_leading = false;
    bool is_over = false;  // As `what` was when it was stepped last.
    std::atomic<bool> is_to_end{false};
  };

  static void heed(member& of);
  void step(member& of, time_point now);
  void step_if_due();
  void flush_all(connection::lock& held);
  void lead_one_round(connection::lock& held);
  void follow(connection::lock& held, member& me);
  void leave(member& me);
  time_point lines_wake_at() const;
  time_point wake_at() const;

  std::mutex mutex_{};
  engine::voters voters_{};
  std::vector<std::unique_ptr<connection>> lines_{};
  net::event_fd wake_leader_{};
  std::list<member*> members_{};
  bool has_leader_ = false;
  time_point leader_wakes_at_{};  // While it sleeps in poll, else past.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
