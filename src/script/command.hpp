// SPDX-License-Identifier: Apache-2.0
// One typed command for each script, and its bytes.
#pragma once

#include "base/time.hpp"
#include "script/keys.hpp"
#include "script/quorum_record.hpp"
#include "script/source.hpp"

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::script {

// A script call, ready to be encoded as EVALSHA or, after NOSCRIPT, as EVAL.
struct command {
  id script;
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

enum class call { by_digest, by_text };
void append(std::string& out, const command& what, call how);

// `label` is cut at 256 bytes; `|` and control bytes in it are percent-escaped.
// `not_after` is the server time after which this copy must have no effect; zero (the epoch) means none.
command acquire(const lock_keys& keys, const owner_id& owner, std::chrono::milliseconds ttl, server_time not_after,
                std::chrono::milliseconds max_ttl, std::string_view label, fencing_token min_fence, int block = 0);
command renew(const lock_keys& keys, const owner_id& owner, fencing_token token, std::chrono::milliseconds ttl);

command release(const lock_keys& keys, const owner_id& owner, fencing_token token);
// More tokens behind `last`, the last of those that come with `grant`, while nobody waits outside.
command reserve(const lock_keys& keys, const owner_id& owner, fencing_token grant, fencing_token last, int block);
command inspect(const lock_keys& keys);

// How much of a lock an entry takes, and what the caller takes the name for.
struct part {
  // x: all of an exclusive lock; r, w: to read or write under a shared lock; p: permits of a semaphore.
  char mode = 'x';
  int permits = 0;  // Of x: the block, how many tokens behind the granted one are reserved (P14).
  int size = 0;     // Of the semaphore, or of the room in which a reader takes one and a writer all.
};
inline constexpr int most_permits = 1'000'000;

// Who waits, as the line knows a process: by its channel, and whether it hears what is said there.
struct listener {
  std::string channel;
  bool hears = false;  // It has subscribed, on the same server run, and the server said so (P1).
};
// Where wait puts an entry.
struct line_entry {
  std::chrono::milliseconds ttl;
  std::string_view label;
  fencing_token min_fence;
  std::chrono::milliseconds window;  // To claim a grant in.
  server_time wait_until;            // Zero: without end.
  std::uint64_t ticket;              // Had before; zero: none.
  part what{};
};
command wait(const lock_keys& keys, const owner_id& owner, const line_entry& entry, const listener& who,
             server_time not_after, std::chrono::milliseconds max_ttl);
// As wait, but busy instead of a place in line.
command try_line(const lock_keys& keys, const owner_id& owner, const line_entry& entry, const listener& who,
                 server_time not_after, std::chrono::milliseconds max_ttl);
// `others`: of the same process, in the same line; it looks for them, too.
inline constexpr std::size_t most_others = 255;
command look(const lock_keys& keys, const owner_id& owner, const part& what, const listener& who, server_time not_after,
             std::chrono::milliseconds max_ttl, const std::vector<owner_id>& others = {});
// Takes back whatever became of the owner id: its place in line, or a lease whose token nobody learned.
command leave(const lock_keys& keys, const owner_id& owner);
// Of a counted kind: a writer becomes a reader; a semaphore gets another size.
command downgrade(const lock_keys& keys, const owner_id& owner, fencing_token token);
command resize(const lock_keys& keys, int size);
// Of a resize: it is to have no effect later than that.
void set_not_after(command& what, server_time not_after);
command break_lock(const lock_keys& keys, fencing_token seen, break_mode mode, std::string_view by,
                   std::string_view why);

// Of the server. `hold`: how long a lease may live on that it has forgotten. `first`: it cannot have forgotten any.
enum class epoch_start { unknown, first };
// An onlooker has no leases, and asks for none: how long they may live on does not matter to others (P18).
enum class asker { holder, onlooker };
// `tag`: as of epoch_key().
command epoch(std::string_view prefix, std::chrono::milliseconds hold, asker who,
              epoch_start start = epoch_start::unknown, std::optional<int> tag = {});

// ---- of a quorum ----
// Who asks for a vote: somebody else may be first in line, and is let in before it.
enum class standing : char { newcomer = '-', first_in_line = 'h', keeper = 'k' };
// Asks one node for its vote. `proposal`: the token that all nodes shall give. `what`: of a counted kind.
command vote(const lock_keys& keys, const owner_id& owner, std::chrono::milliseconds ttl, server_time not_after,
             std::chrono::milliseconds max_ttl, std::string_view label, fencing_token min_fence, fencing_token proposal,
             std::string_view prefix, const quorum_record& record, const part& what = {},
             standing who = standing::newcomer);
// Writes the larger token over that of our vote.
command raise(const lock_keys& keys, const owner_id& owner, fencing_token to, const part& what = {});
// As renew, of a vote.
command renew_vote(const lock_keys& keys, const owner_id& owner, fencing_token token, std::chrono::milliseconds ttl,
                   std::string_view prefix, const quorum_record& record);
// As inspect, of a vote: what a server of another list keeps is not shown.
command inspect_vote(const lock_keys& keys, std::string_view prefix, const quorum_record& record);
// Writes a server's record over `before`; over none, if that is empty.
command write_record(std::string_view prefix, const quorum_record& record, std::string_view before);

// Lets the line go on where `behind` had to stop (goes_on() of its reply). Empty: it is about no line.
std::optional<command> go_on(const command& behind);

// Could the answer to it be a grant?
bool may_grant(const command& what);
// Does nothing change by it that anybody asks for?
bool only_reads(const command& what);
// While the server is in quarantine: the same, but nothing is granted, nothing claimed, and no line moves (P21). Not
// for acquire, which would grant.
void keep_quarantine(command& what);
// It gives something back, and was sent so: the line did not move behind it.
bool has_kept_the_line(const command& what);

}  // namespace holdfast::script
