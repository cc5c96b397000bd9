// SPDX-License-Identifier: Apache-2.0
// A name service that says what a test wants: this program's getaddrinfo(3), which knows the names that tests make up
// and asks the real one for all others.
#pragma once

#include <string>
#include <vector>

namespace holdfast::net {

// Use names below `test` (RFC 6761, 6.2). From any thread; look-ups of the name must have ended, or end with it.
class made_up_name {
public:
  explicit made_up_name(std::string name);
  ~made_up_name();
  made_up_name(const made_up_name&) = delete;
  made_up_name& operator=(const made_up_name&) = delete;

  // Until either is said, a look-up of the name hangs.
  void has(std::vector<std::string> literals);
  void fails_with(int error);  // EAI_AGAIN, say.

  // Waits until it was looked up so often. False: not within ten seconds.
  bool was_asked(int times);
  int asked() const;

private:
  const std::string name_;
};

}  // namespace holdfast::net
