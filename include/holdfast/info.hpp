// SPDX-License-Identifier: Apache-2.0
// What can be seen of a lock and of a server, for people and for `holdfast show`, `ls` and `doctor`.
#pragma once

#include <holdfast/names.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {

// What a name is used as. One name is one kind: everything else is errc::wrong_kind.
enum class lock_kind { exclusive, shared, semaphore };

// How much of it one takes.
enum class hold_mode {
  exclusive,  // All of it: a lock, or a shared lock for writing.
  shared,     // A shared lock for reading.
  permits,    // Some permits of a semaphore.
};

struct waiter_info {
  std::string owner{};  // As lock_info::owner.
  std::chrono::milliseconds waiting{0};
  hold_mode mode = hold_mode::exclusive;
  int permits = 1;  // Of a semaphore; 1 otherwise.
};

// One of those who hold a semaphore or a shared lock together. Fields as in lock_info.
struct holder_info {
  std::string owner{};
  fencing_token token{};
  std::chrono::milliseconds ttl{0};
  std::chrono::milliseconds remaining{0};
  std::chrono::milliseconds held_for{0};
  hold_mode mode = hold_mode::exclusive;
  int permits = 1;
  bool breaking = false;
};

// The last recorded break of a lock.
struct break_record {
  fencing_token token{};               // The token that was broken.
  std::chrono::milliseconds since{0};  // How long ago, by the server's clock.
  std::string by{};                    // The breaker's owner label.
  std::string why{};
};

// What one server of a quorum says of a lock.
struct node_info {
  std::string endpoint{};  // "10.0.0.2:6379"
  // How many have its vote: of a semaphore or a shared lock perhaps several; of a semaphore no more than 100 are
  // counted.
  int holders = 0;
  std::string owner{};    // Of those the one whose lease ends first; empty: nobody.
  fencing_token token{};  // Under which.
  std::chrono::milliseconds remaining{0};
  std::chrono::milliseconds quarantine{0};  // For so long its vote does not count.
  std::string trouble{};                    // Why it did not answer; empty: it did.
};

// One lock at one instant of the server. Advisory: it may have changed hands before you read it.
struct lock_info {
  std::string name{};
  bool held = false;
  bool foreign = false;  // Held by something that is not holdfast (plain naming, or a newer version), or by nobody
                         // knows whom (the key of a semaphore's holders is lost): only `remaining` and `endless`
                         // are known. Of list() also a key of another type.
  bool endless = false;  // Foreign, and without an expiry: `remaining` is zero and says nothing.
  std::string owner{};   // The holder's label, as it was given. Escape it before you show it.
  fencing_token token{};
  std::chrono::milliseconds ttl{0};        // What the holder asked for; broken: what was left then, if that is less.
  std::chrono::milliseconds remaining{0};  // Until it ends without a renewal.
  std::chrono::milliseconds held_for{0};   // Since the grant, by the server's clock.
  bool breaking = false;                   // Broken: it is not renewed any more and ends with `remaining`.
  std::optional<break_record> last_break{};
  std::vector<waiter_info> waiters{};  // The first 100, in the order of the line. How many there are: `waiting`.

  // The fields above speak of the holder whose lease ends first where several hold it together; here are the first 100
  // of them, in the order in which their leases end. Empty for an exclusive lock.
  lock_kind kind = lock_kind::exclusive;
  std::vector<holder_info> holders{};
  int size = 0;          // Of a semaphore: its permits; 0 otherwise.
  int permits_held = 0;  // Of a semaphore: those that are taken. Of a shared lock: how many hold it.

  // For so long nobody is granted anything by this server (client_options::quarantine). Only from inspect(), and from
  // list() of a quorum.
  std::chrono::milliseconds quarantine{0};

  // Of a quorum: each of its servers. It is held if a majority of them, of a semaphore as many as its holders need, has
  // the same holder, and may be if those that did not answer could make up the number; the fields above are what those
  // say. From inspect() and list().
  std::vector<node_info> nodes{};

  // How many stand in line, of whom `waiters` has the first; not whose connection is gone. Where the server's ACL
  // denies PUBSUB, who was killed may be among them until the line moves on, where nobody else waits for a minute at
  // most. Of a quorum zero, and nobody is listed: its line is not asked.
  std::int64_t waiting = 0;
};

enum class break_mode {
  at_expiry,    // Renewal stops; the lock is free when the remaining ttl is over. Timed exclusion (C1) holds.
  immediately,  // Free at once. Until the old holder hears of it two may believe that they hold it.
};

struct break_options {
  std::string why{};  // Recorded beside the lock for a week. At most 256 bytes.
  break_mode mode = break_mode::at_expiry;
};

// One finding of diagnose().
struct finding {
  enum class severity { ok, warning, error };
  severity level = severity::ok;
  std::string code{};  // "E05" as in docs/errors.md, or empty.
  std::string what{};  // One line, with the actual value.
  std::string fix{};   // One command or sentence; empty when nothing is to be done.
};

// What diagnose() found out. Fields that the server's ACL hides stay empty and are named in a finding.
struct diagnosis {
  std::string endpoint{};
  std::string server_version{};  // "7.0.15"; "Valkey 9.1.2".
  std::string role{};
  std::string mode{};
  std::string eviction_policy{};
  // For so long nothing is granted (client_options::quarantine). Of a cluster: by one of its primaries at least; of a
  // quorum: until a majority is out of it.
  std::chrono::milliseconds quarantine{0};
  std::chrono::microseconds round_trip_median{0};
  std::chrono::microseconds round_trip_max{0};
  std::vector<finding> findings{};

  // The worst of all findings.
  finding::severity worst() const noexcept {
    auto worst = finding::severity::ok;
    for (const auto& f : findings) {
      if (f.level > worst) worst = f.level;
    }
    return worst;
  }
};

}  // namespace v0
}  // namespace holdfast
