// SPDX-License-Identifier: Apache-2.0
// Every write to every key, in the order in which the server made them: keyspace notifications, read by a thread of
// their own. The judge of "never renewed after it was released" (C6, H42, B1).
#pragma once

#include "support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

struct key_event {
  std::string what;  // "set", "del", "expire" (any PEXPIRE, also that of SET PX), "expired", ...
  std::string key;
};

class key_events {
public:
  // Listens from now on.
  explicit key_events(redis_server& server);
  ~key_events();
  key_events(const key_events&) = delete;
  key_events& operator=(const key_events&) = delete;

  // All so far; waits until everything that the server did before this call is in it.
  std::vector<key_event> take();

private:
  struct hidden;
  redis_server& server_;
  std::unique_ptr<hidden> hidden_;
};

}  // namespace holdfast::test
