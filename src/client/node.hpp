// SPDX-License-Identifier: Apache-2.0
// What a client has for one server: the connection that its callers share, who leads it while they do not, the keeper,
// and what these have to tell each other. A client of one server has one; where locks lie on several servers, each
// server has its own, and each lease knows the one that keeps it.
#pragma once

#include "client/command_connection.hpp"
#include "client/deputy_thread.hpp"
#include "client/keeper_thread.hpp"
#include "client/reporter.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

struct node_settings {
  net::endpoint where;
  engine::channel::settings commands;
  engine::channel::settings keeper;
  core::clock_drift drift;
  std::string ear_name;                // The channel on which the line speaks to it: its name among all that wait.
  std::function<void()> on_refused{};  // As of connection, for calls and for the keeper.
};

class node {
public:
  // `tell`, `tell_of_keeper`: who hears of the connection for commands, and of the keeper's and its leases. `conclude`:
  // who concludes the calls that no thread waits for.
  node(const node_settings& from, base::random_source& rng, const std::shared_ptr<reporter>& tell,
       const std::shared_ptr<reporter>& tell_of_keeper, std::function<void(command_connection::ended_calls)> conclude);
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::shared_ptr<command_connection>& commands() const { return commands_; }
  keeper_thread& keeper() { return *keeper_; }
  // Another server, to be talked to as this one, a replica of it say: with the same TLS, and the same login.
  net::endpoint endpoint_at(net::tcp_address where) const { return {std::move(where), uses_tls_, tls_}; }
  const engine::credentials& login() const { return login_; }

  // Its threads are there from now on, or it throws.
  void stand_by();
  // Calls that no thread waits for: somebody must be there to drive them.
  void start(const std::shared_ptr<async_call>& what);
  // Something has changed that its connections must mind. From any thread.
  void look_around();
  // Ends its threads; `at_most`: for what is still to be released. `wait`: until they have ended.
  void close(duration at_most, bool wait) noexcept;

private:
  const bool uses_tls_;
  const net::tls_files tls_;
  const engine::credentials login_;
  const std::shared_ptr<keeper_thread> keeper_;
  const std::shared_ptr<command_connection> commands_;
  const std::shared_ptr<deputy_thread> deputy_;
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
