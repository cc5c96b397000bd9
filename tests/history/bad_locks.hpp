// SPDX-License-Identifier: Apache-2.0
// Small locks over the same server, each with one of the mistakes that real ones were made with, and one without: the
// checker must refuse the first and allow the last, or its word about ours is worth nothing.
#pragma once

#include "history/operation.hpp"
#include "support/redis_connection.hpp"

#include <memory>
#include <optional>
#include <random>
#include <string>

namespace holdfast::test::history {

// A lease of 40 ms that its holder may believe in until `until`.
struct bad_hold {
  std::string id{};
  std::uint64_t token = 0;
  instant until = 0;
  int part = everything;
};

// As it is here, a lock without a mistake: SET NX PX with a fresh value, compare and delete, a deadline counted from
// before the request.
class bad_lock {
public:
  static constexpr std::int64_t ttl_ms = 40;

  bad_lock(const std::string& socket, unsigned seed) : server_{socket}, random_{seed} {}
  virtual ~bad_lock() = default;

  virtual std::optional<bad_hold> attempt(int part);
  virtual outcome release(const bad_hold& held);
  // A bad lock's release is heard by nobody, as that of most: else whoever lost its place would say so.
  virtual bool tells() const { return false; }
  // Called each millisecond while it is held.
  virtual void look(bad_hold&) {}
  // Of a reentrant lock: what an unlock does that is not the last one.
  virtual void unlock_once(const bad_hold&) {}

protected:
  static bool is_ok(const answer& one) { return one.what == answer::kind::text; }
  bad_hold fresh(int part);
  bool set_if_free(const std::string& key, const bad_hold& held);

  redis_connection server_;
  std::mt19937_64 random_;
};

// "none", or the name of a mistake: see bad_locks.cpp.
std::unique_ptr<bad_lock> make_bad_lock(const std::string& mistake, const std::string& socket, unsigned seed);

}  // namespace holdfast::test::history
