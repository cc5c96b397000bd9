// SPDX-License-Identifier: Apache-2.0
// The first words on a new connection: HELLO with AUTH, SELECT, TIME, INFO for the run id, which node of a cluster it
// is, the question about the epoch, whether there is WAIT, and which scripts the server has, in one write. Those of the
// usual ones that it lacks are loaded in a second one and their digests checked, by the first connection after a
// restart. Its own file, because what each refusal means is a table of its own.
#pragma once

#include "base/time.hpp"
#include "engine/epoch_watch.hpp"
#include "resp/value.hpp"
#include "script/source.hpp"

#include <holdfast/error.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>

namespace holdfast::engine {

struct credentials {
  std::string user;      // Empty: the default user.
  std::string password;  // Empty: none.
  bool is_somebody() const { return !user.empty() || !password.empty(); }
};

// Why there is no connection.
struct connection_failure {
  errc code = errc::server_silent;  // While nothing is known yet.
  std::string text{};               // The server's or the system's own words.
  bool is_final = false;            // Trying again will not help.
  bool is_refusal = false;          // Somebody definitely said no.
};

// What follows when the question about the epoch is answered so. `run_id`: as the greeting has it.
connection_failure no_epoch(const resp::value& reply, std::string_view run_id, bool is_in_cluster = false);

class greeting {
public:
  struct settings {
    credentials who{};
    int database = 0;
    bool needs_scripts = true;
    // A server that refuses WAIT is of no use, and that is found out before anything is granted (B66).
    bool needs_wait = false;
    // Which node of its cluster a majority names at this address; empty: it is of no cluster. A node's address may
    // have become another server's, which knows nothing of our locks and would grant them.
    std::string node_id{};
  };

  // Appends the greeting to `out`. `epoch`, if there is one that is on, asks its question and hears the answer.
  void begin(std::string& out, const settings& how, epoch_watch* epoch = nullptr, time_point now = {});

  // Takes the next reply, and appends to `out` what is to be said to it. A failure ends the connection; nullopt: go on.
  std::optional<connection_failure> on_reply(time_point now, const resp::value& reply, std::string& out);

  bool is_done() const { return step_ == step::done; }
  server_time now() const { return now_; }  // What TIME said.
  // When the first write was answered: its round trip, without that of the scripts.
  time_point heard_at() const { return heard_at_; }
  // Whether the server has that script: it said so, or took it.
  bool has_script(script::id which) const { return has_[static_cast<std::size_t>(which)]; }
  const std::string& server_version() const { return version_; }
  // Which run of which server this is. Empty where INFO is denied.
  const std::string& run_id() const { return run_id_; }

private:
  enum class step { hello, select, time, info, node, epoch, wait, scripts, loads, done };

  std::optional<connection_failure> on_hello(const resp::value&);
  std::optional<connection_failure> on_time(const resp::value&);
  std::optional<connection_failure> on_scripts(const resp::value&, std::string& out);
  std::optional<connection_failure> on_load(const resp::value&);
  std::optional<connection_failure> on_info(const resp::value&);
  std::optional<connection_failure> on_node(const resp::value&) const;
  std::optional<connection_failure> on_epoch(time_point now, const resp::value&);
  std::optional<connection_failure> judge(time_point now, const resp::value&, std::string& out);
  void advance();
  // The first of the usual scripts that the server is not known to have.
  std::span<const script::source>::iterator missing() const;
  step after_info() const { return node_id_.empty() ? after_node() : step::node; }
  step after_node() const { return epoch_ ? step::epoch : after_epoch(); }
  step after_epoch() const { return needs_wait_ ? step::wait : after_wait(); }
  step after_wait() const { return needs_scripts_ ? step::scripts : step::done; }

  step step_ = step::hello;
  int database_ = 0;
  bool needs_scripts_ = true;
  bool needs_wait_ = false;
  bool says_who_ = false;  // HELLO has a password.
  std::string node_id_{};
  epoch_watch* epoch_ = nullptr;  // Null: it is not asked for.
  time_point begun_at_{};
  time_point heard_at_{};
  std::array<bool, script::count> has_{};
  server_time now_{};
  std::string version_{};
  std::string run_id_{};
};

}  // namespace holdfast::engine
