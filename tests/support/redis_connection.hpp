// SPDX-License-Identifier: Apache-2.0
// A tiny blocking connection to a server under test, for what tests do and ask behind the library's back. Over plain
// hiredis, so that no code of ours judges itself.
#pragma once

#include "support/answer.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;

namespace holdfast::test {

class redis_connection {
public:
  // A path of a Unix socket.
  explicit redis_connection(const std::string& socket);
  // A port of the loopback.
  explicit redis_connection(int port);
  ~redis_connection();
  redis_connection(redis_connection&&) noexcept;
  redis_connection& operator=(redis_connection&&) noexcept;

  bool connected() const;

  // One command. kind::none when there is no connection or no answer within `patience`.
  answer ask(const std::vector<std::string>& words);

  template <class... Words>
  answer operator()(const Words&... words) {
    return ask({std::string{words}...});
  }

  void set_patience(std::chrono::milliseconds patience);

private:
  struct closer {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, closer> context_;
};

}  // namespace holdfast::test
