// SPDX-License-Identifier: Apache-2.0
// A real redis-server for one test: on a Unix socket of its own, and on a loopback port when asked. Stopped by pid;
// at its end it looks for keys of ours without an expiry (C8), so every test with a server checks that.
#pragma once

#include "support/child_process.hpp"
#include "support/redis_connection.hpp"
#include "support/scratch_directory.hpp"

#include <string>
#include <vector>

namespace holdfast::test {

struct redis_options {
  bool tcp = false;                        // Also listen on 127.0.0.1, a free port.
  int at_port = 0;                         // Listen on this port of 127.0.0.1.
  std::string tls_directory{};             // Not empty: tls.pem and tls.key there, a free TLS port (tls_material.hpp).
  std::string password{};                  // requirepass.
  std::vector<std::string> config{};       // Lines of redis.conf.
  std::vector<std::string> environment{};  // "LD_PRELOAD=..." for the skewed clock.
  bool keys_may_stay = false;              // The test breaks C8 on purpose (a foreign key without expiry).
  bool is_declared = true;                 // Says at its first start that no lock is forgotten.
};

class redis_server {
public:
  explicit redis_server(redis_options options = {});
  ~redis_server();
  redis_server(const redis_server&) = delete;
  redis_server& operator=(const redis_server&) = delete;

  const std::string& socket() const { return socket_; }
  int port() const { return port_; }
  int tls_port() const { return tls_port_; }
  int pid() const { return process_.pid(); }
  std::string directory() const { return scratch_.path(); }

  std::string unix_uri(int database = 0) const;
  std::string tcp_uri(int database = 0) const;

  // An administrator's connection of its own.
  redis_connection connect() const;

  // One command as the administrator, on a connection kept for that.
  template <class... Words>
  answer operator()(const Words&... words) {
    return ask({std::string{words}...});
  }
  answer ask(const std::vector<std::string>& words);

  // A number of INFO, "connected_clients".
  std::int64_t info(const std::string& field);
  // How many scripts it has run since its start, or CONFIG RESETSTAT.
  std::int64_t scripts_run();

  void pause();   // SIGSTOP, and waits until it stands still.
  void resume();  // SIGCONT.
  void kill();    // SIGKILL, and waits.
  // After kill(): on the same socket and port, with what its files kept. In quarantine.
  void restart();
  // The same, by somebody who says that nothing is forgotten before any client gets in.
  void restart_undoubted();

  // As `holdfast init`: no lock is forgotten, so that there is no quarantine, although it started a moment ago.
  void declare_nothing_forgotten(int database = 0, const std::string& prefix = "hf:");

  // Everything is gone but the knowledge of this run: as FLUSHALL on a server that is old.
  void lose_all_locks();

  // Keys of `prefix` in all databases that would never go away.
  std::vector<std::string> keys_without_expiry(const std::string& prefix = "hf:");

private:
  bool launch();

  redis_options options_;
  scratch_directory scratch_;
  std::string socket_;
  std::string listens_at_;  // The socket, but while it starts.
  int port_ = 0;
  int tls_port_ = 0;
  bool paused_ = false;
  child_process process_;
  redis_connection admin_;
};

// A port of the loopback that was free a moment ago.
int free_port();

}  // namespace holdfast::test
