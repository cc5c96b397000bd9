// SPDX-License-Identifier: Apache-2.0
// The addresses of one host, tried one after the other: in which order, and what to say when none of them will do.
#pragma once

#include "net/silent_addresses.hpp"
#include "net/socket_address.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::net {

class address_attempts {
public:
  // `silent`: as others who connect there know it, too.
  explicit address_attempts(std::shared_ptr<silent_addresses> silent) : silent_{std::move(silent)} {}

  // Of a new look-up. Whoever was silent the last time is tried last: nobody behind him had his turn.
  void begin(std::vector<socket_address> found);

  // A non-blocking socket that connects to the next of them, or is connected. -1: there is none left, see error().
  int connect_next();
  // What came of that one.
  void on_error(int error);
  void on_silence();
  void on_spoken();

  int error() const { return error_; }
  bool is_refusal() const;  // Somebody definitely said no.

  // The one that connect_next() came to.
  const socket_address& last() const { return addresses_[next_ - 1]; }

private:
  std::vector<socket_address> addresses_{};
  std::size_t next_ = 0;
  int error_ = 0;
  int weight_ = 0;  // How much that says of the host.
  std::shared_ptr<silent_addresses> silent_;
};

}  // namespace holdfast::net
