// SPDX-License-Identifier: Apache-2.0
// The first words on a new connection: HELLO with AUTH, SELECT, TIME, INFO for the run id, and the usual scripts with
// their digests checked, in one write. Its own file, because what each refusal means is a table of its own.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <holdfast/error.hpp>

#include <optional>
#include <string>

namespace holdfast::engine {

struct credentials {
  std::string user;      // Empty: the default user.
  std::string password;  // Empty: none.
};

// Why there is no connection.
struct connection_failure {
  errc code = errc::connection_lost;
  std::string text{};       // The server's or the system's own words.
  bool is_final = false;    // Trying again will not help.
  bool is_refusal = false;  // Somebody definitely said no.
};

class greeting {
public:
  // Appends the greeting to `out`.
  void begin(std::string& out, const credentials& who, int database, bool loads_scripts);

  // Takes the next reply. A failure ends the connection; nullopt: go on.
  std::optional<connection_failure> on_reply(const resp::value& reply);

  bool is_done() const { return step_ == step::done; }
  server_time now() const { return now_; }  // What TIME said.
  const std::string& server_version() const { return version_; }
  // Which run of which server this is. Empty where INFO is denied.
  const std::string& run_id() const { return run_id_; }

private:
  enum class step { hello, select, time, info, scripts, done };

  std::optional<connection_failure> on_hello(const resp::value&);
  std::optional<connection_failure> on_time(const resp::value&);
  std::optional<connection_failure> on_script(const resp::value&);
  std::optional<connection_failure> on_info(const resp::value&);
  void advance();

  step step_ = step::hello;
  int database_ = 0;
  bool loads_scripts_ = true;
  std::size_t scripts_seen_ = 0;
  server_time now_{};
  std::string version_{};
  std::string run_id_{};
};

}  // namespace holdfast::engine
