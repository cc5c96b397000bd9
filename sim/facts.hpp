// SPDX-License-Identifier: Apache-2.0
// What happens in a world, in words that the invariants are written in.
#pragma once

#include "model_words.hpp"
#include "world_time.hpp"

#include "resp/value.hpp"
#include "script/keys.hpp"
#include "script/source.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sim {

enum class lock_kind { exclusive, semaphore, shared };
struct lock {
  int number;
  lock_kind kind;
  int size;  // Permits of a semaphore; 1 of an exclusive lock; of a shared one the room of its readers.
  script::lock_keys keys;
};

enum class call_end { acquired, busy, timed_out, cancelled, unknown, not_applied };
// One acquire, as the program that makes it sees it.
struct call_record {
  int number = 0;
  std::string label{};  // The owner label that it goes by: no other call has it.
  int process = 0;
  int lock = 0;
  bool is_try = false;
  bool is_durable = false;  // It asks that replicas have what it is granted.
  std::chrono::milliseconds ttl{};
  duration timeout{};  // How late a request of it may take effect.
  instant started_at{};
  instant gives_up_at = end_of_time;  // By its own clock.
  instant ended_at = end_of_time;
  call_end end = call_end::unknown;
  bool may_have_copies = false;  // Cut off, and perhaps still on their way.
  int code = 0;                  // The errc, where there is one.
};

// A lease, as its holder sees it.
struct hold {
  int number = 0;
  int call = 0;
  int process = 0;
  int lock = 0;
  std::string owner{};
  std::uint64_t grant = 0;  // The token that the server granted;
  std::uint64_t token = 0;  // and its own, a larger one if it was handed on in the process.
  int permits = 1;
  instant counted_from{};  // The last request that it counts from.
  instant valid_until{};   // valid() from now until then, by the holder's clock.
  instant got_at{};
  instant must_end_by = end_of_time;  // However well it is renewed.
  int set = 0;                        // Of those that are held as one, and lost together; 0: it is held alone.
  std::chrono::milliseconds ttl{};    // With which it is renewed.
  bool is_by_hand = false;            // When its program asks for that, and else never:
  instant may_last_until{};           // the end of what it has asked for; no end while it waits for an answer.
};

enum class hold_end { released, lost, died, held_too_long, handed_on };
// How a downgrade ended for the program: it reads now; the server has nothing of the lease; or it has not heard.
enum class downgrade_end { reads, gone, unknown };

// Who the server says holds a lock.
struct holder {
  std::string owner;
  std::string token;
  std::chrono::microseconds expires_at;  // Of the server's clock; negative: never.
  int permits;
};
// Who stands in line for it.
struct line_place {
  std::string owner;
  double ticket;
  std::string channel;  // Of its process.
  std::string label;
  bool is_told;
  std::int64_t wait_until_us;
  int permits = 1;
  std::chrono::milliseconds window{};  // In which it claims what it is granted.
  std::int64_t looked_us = 0;          // When somebody last looked for it, by the server's clock.
};

// One run of a script in the server.
inline constexpr int nobody = -1;  // The process that an operator is.
struct script_run {
  script::id which;
  words_t keys;
  words_t args;
  int process;
  instant sent_at;
  int lock;
  server_time at;
  bool is_given_up = false;  // Whoever sent it has closed that connection, and so awaits no answer.
  std::vector<holder> before{};
  std::vector<line_place> line_before{};
  std::string fence_before{};
  // When it has run.
  const resp::value* reply = nullptr;
  std::vector<holder> after{};
  // Names the waiter or holder that it runs for. Empty: nobody.
  std::string owner() const { return args.empty() ? std::string{} : std::string{args[0]}; }
};

// What is outside of the contract's assumptions, and so may be the reason for an overlap.
// A server that restarts without its data is none: the quarantine is for that.
enum class cause { clock_stepped, clock_rate, data_lost, keys_deleted, broken_at_once, another_primary };
constexpr const char* to_string(cause what) {
  switch (what) {
    case cause::clock_stepped: return "the server's clock stepped";
    case cause::clock_rate: return "the server's clock ran at a rate beyond rho";
    case cause::data_lost: return "the server lost data";
    case cause::keys_deleted: return "keys were deleted while the server ran";
    case cause::broken_at_once: return "an operator broke it without waiting for its expiry";
    case cause::another_primary: return "another server became the primary";
  }
  return "";
}
inline constexpr int any_lock = -1;
struct disturbance {
  cause what;
  instant at;
  int lock = any_lock;
};

}  // namespace holdfast::sim
