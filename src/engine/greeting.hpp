// SPDX-License-Identifier: Apache-2.0
// The first words on a new connection: HELLO with AUTH, SELECT, TIME, INFO for the run id, which node of a cluster it
// is, the question about the epoch, whether there is WAIT, and the usual scripts with their digests checked, in one
// write. Its own file, because what each refusal means is a table of its own.
#pragma once

#include "base/time.hpp"
#include "engine/epoch_watch.hpp"
#include "resp/value.hpp"

#include <holdfast/error.hpp>

#include <optional>
#include <string>

namespace holdfast::engine {

struct credentials {
  std::string user;      // Empty: the default user.
  std::string password;  // Empty: none.
  bool is_somebody() const { return !user.empty() || !password.empty(); }
};

// Why there is no connection.
struct connection_failure {
  errc code = errc::connection_lost;
  std::string text{};       // The server's or the system's own words.
  bool is_final = false;    // Trying again will not help.
  bool is_refusal = false;  // Somebody definitely said no.
};

// What follows when the question about the epoch is answered so. `run_id`: as the greeting has it.
connection_failure no_epoch(const resp::value& reply, std::string_view run_id);

class greeting {
public:
  struct settings {
    credentials who{};
    int database = 0;
    bool loads_scripts = true;
    // A server that refuses WAIT is of no use, and that is found out before anything is granted (B66).
    bool needs_wait = false;
    // Which node of its cluster a majority names at this address; empty: it is of no cluster. A node's address may
    // have become another server's, which knows nothing of our locks and would grant them.
    std::string node_id{};
  };

  // Appends the greeting to `out`. `epoch`, if there is one that is on, asks its question and hears the answer.
  void begin(std::string& out, const settings& how, epoch_watch* epoch = nullptr, time_point now = {});

  // Takes the next reply. A failure ends the connection; nullopt: go on.
  std::optional<connection_failure> on_reply(time_point now, const resp::value& reply);

  bool is_done() const { return step_ == step::done; }
  server_time now() const { return now_; }  // What TIME said.
  const std::string& server_version() const { return version_; }
  // Which run of which server this is. Empty where INFO is denied.
  const std::string& run_id() const { return run_id_; }

private:
  enum class step { hello, select, time, info, node, epoch, wait, scripts, done };

  std::optional<connection_failure> on_hello(const resp::value&);
  std::optional<connection_failure> on_time(const resp::value&);
  std::optional<connection_failure> on_script(const resp::value&);
  std::optional<connection_failure> on_info(const resp::value&);
  std::optional<connection_failure> on_node(const resp::value&) const;
  std::optional<connection_failure> on_epoch(time_point now, const resp::value&);
  void advance();
  step after_info() const { return node_id_.empty() ? after_node() : step::node; }
  step after_node() const { return epoch_ ? step::epoch : after_epoch(); }
  step after_epoch() const { return needs_wait_ ? step::wait : after_wait(); }
  step after_wait() const { return loads_scripts_ ? step::scripts : step::done; }

  step step_ = step::hello;
  int database_ = 0;
  bool loads_scripts_ = true;
  bool needs_wait_ = false;
  std::string node_id_{};
  epoch_watch* epoch_ = nullptr;  // Null: it is not asked for.
  time_point begun_at_{};
  std::size_t scripts_seen_ = 0;
  server_time now_{};
  std::string version_{};
  std::string run_id_{};
};

}  // namespace holdfast::engine
