// SPDX-License-Identifier: Apache-2.0
// What the library sends for an acquire and a release of a free lock, sent again by plain hiredis, pipelined on one
// connection. It is overheard from the library itself, so the two cannot drift apart.
#pragma once

#include "bench/server.hpp"

#include <string>
#include <vector>

namespace bench {

constexpr int at_once = 1000;

class overheard {
public:
  explicit overheard(const std::string& where);

  // A thousand acquires, each of a name and an owner id of its own, in one write, and then their releases.
  void replay(const hiredis& server) const;

private:
  using words = std::vector<std::string>;
  words as(const words& what, int number, const std::string& owner, const std::string& token) const;

  std::string name_ = "bench:overheard";
  std::string owner_{};
  std::string token_{};
  words acquire_{};
  words release_{};
};

}  // namespace bench
