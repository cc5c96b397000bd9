// SPDX-License-Identifier: Apache-2.0
// Where the cases are played: a real redis-server, or the simulator's model of one.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::tests {

class world {
public:
  world() = default;
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  virtual ~world() = default;

  // As the server's operator: sets scenes and looks at what came of them.
  virtual resp::value execute(const std::vector<std::string>& words) = 0;

  // As the user who locks; the same one unless the world restricts it.
  virtual resp::value execute_as_user(const std::vector<std::string>& words) { return execute(words); }

  virtual server_time now() = 0;
  virtual bool wait_until_gone(const std::string& key) = 0;  // False after 10 s.
  virtual void set_memory_full(bool full) = 0;
  // Somebody listens to the channel, a sharded one when it ends with `}`, until end_listening; and the next thing that
  // was said there, nil for nothing.
  virtual void listen(const std::string& channel) = 0;
  virtual void listen_to_all() = 0;  // With a pattern, and to nobody's knowledge: nothing of that is a next message.
  virtual void end_listening() = 0;
  virtual resp::value next_message() = 0;
  // For the user who locks.
  virtual void deny(const std::string& command) = 0;
  virtual void allow_all() = 0;
};

// Starts a redis-server of its own on a Unix socket in a new directory; the destructor stops it by its pid. Null when
// it cannot be started; the reason is printed. `rule`, when it is not empty, is the ACL rule of the user who locks, and
// `lacks` a command that the server does not have (rename-command).
std::unique_ptr<world> make_real_world(const std::string& rule = {}, const std::string& lacks = {});
std::unique_ptr<world> make_model_world(const std::string& lacks = {});

}  // namespace holdfast::tests
