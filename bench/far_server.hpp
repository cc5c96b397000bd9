// SPDX-License-Identifier: Apache-2.0
// A server as it is seen from another machine: a relay in this process, through which every byte takes its time each
// way. Nothing is lost or overtaken. It costs a little of the processor that all share here, as a network would not.
#pragma once

#include <chrono>
#include <memory>

namespace bench {

class far_server {
public:
  // In front of the server on loopback port `port`.
  far_server(int port, std::chrono::microseconds each_way);
  ~far_server();
  far_server(const far_server&) = delete;
  far_server& operator=(const far_server&) = delete;

  int port() const;

private:
  class relay;
  std::unique_ptr<relay> relay_;
};

}  // namespace bench
