// SPDX-License-Identifier: Apache-2.0
// One typed reply for each script. A parse_* gives nullopt when the value is not one that our scripts give: the peer
// is not who we think it is, and that is errc::unexpected_reply, never "not held".
//
// On the wire (docs/protocol.md): a lone bulk string of 16 digits is the server's now_us and means "done"; everything
// else is an array {code, now_us, ...}. Codes are append-only.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::script {

struct command;

enum class code : int {
  done = 0,            // Granted, renewed, released, broken.
  mine = 1,            // acquire: this owner id holds it already (a retry after a lost reply).
  busy = 2,            // acquire: somebody else holds it.
  late = 3,            // acquire: not_after has passed. This copy had no effect, nothing more (P10).
  spent = 4,           // acquire: this owner id was granted before and has ended (P9).
  not_mine = 5,        // renew, release: no such lease, or it is another's.
  broken = 6,          // renew: broken on purpose; not renewed. vote: not given again.
  queued = 7,          // wait, look: in line.
  quarantine = 8,      // epoch: the server may have forgotten locks.
  wrong_kind = 9,      // The key holds another type or kind.
  bad_argument = 10,   // Checked before the first write.
  fence_too_far = 11,  // min_fence is more than a year ahead of TIME.
  not_held = 12,       // break: nothing to break.
  changed_hands = 13,  // break: held under another token.
  line = 14,           // acquire, wait: free, but somebody may be, or is, in line to take it.
  not_in_line = 15,    // look: no such entry.
  other_size = 16,     // wait, look, vote: the semaphore has another size than the caller says, or than it wants.
  other_quorum = 17,   // vote, renew, quorum_record: the server belongs to another list of servers.
  unseen = 18,         // Done, or a try: there may be room for somebody in line who was not seen.
};
inline constexpr std::size_t code_count = 19;

// What a holder key says. For a foreign value (plain naming) or an unknown vN| only `foreign` is set.
struct holder {
  bool foreign = false;
  std::string label{};  // Unescaped.
  fencing_token token{};
  std::chrono::milliseconds ttl{0};
  server_time granted_at{};
  std::string id{};  // The owner id, 32 hex digits: with several servers, whether it is the same grant on each.
};

// Reads `v1|owner id|token|ttl_ms|granted_us|owner label`.
holder parse_holder(std::string_view value);

struct granted {
  fencing_token token;
};
struct mine {
  fencing_token token;
  std::chrono::milliseconds remaining;
};
struct busy {
  holder by;
  std::chrono::milliseconds remaining;
};  // remaining < 0: the key has no expiry (foreign).
struct late {};
struct spent {};
struct wrong_kind {
  std::string found;
};  // The type the server names, "list".
struct bad_argument {
  std::string what;
};
struct fence_too_far {};
struct queued {
  std::uint64_t ticket;
  std::int64_t ahead;
  std::chrono::milliseconds look_in;
  std::optional<holder> by;  // Empty: nobody holds it now.
  std::chrono::milliseconds remaining;
  // Of those that a look was for, too: who must look for itself, by its place among them.
  std::vector<std::size_t> missing{};
};
struct lined {};
struct unseen {};  // A try saw as much of the line as one script does, and nobody who is there.
struct not_in_line {};
struct other_size {
  int size;  // What the server keeps.
};

struct acquire_reply {
  server_time now;
  std::variant<granted, mine, busy, late, spent, wrong_kind, bad_argument, fence_too_far, queued, lined, unseen,
               not_in_line, other_size>
      what;
};
// Of acquire, wait and look.
std::optional<acquire_reply> parse_acquire(const resp::value&);

struct other_quorum {
  std::string record;  // What the server keeps; perhaps none of ours (script/quorum_record.hpp).
};
struct broken {};  // Somebody broke the vote that is asked for again.
struct vote_reply {
  server_time now;
  std::variant<granted, mine, busy, late, spent, wrong_kind, bad_argument, fence_too_far, other_size, other_quorum,
               broken>
      what;
};
std::optional<vote_reply> parse_vote(const resp::value&);

// gone: no such key; taken: another owner or token; other_quorum: the server serves another list now.
enum class renew_answer { renewed, gone, taken, broken, other_quorum };
struct renew_reply {
  server_time now;
  renew_answer what;
};
std::optional<renew_reply> parse_renew(const resp::value&);

// Of release, leave, raise and reserve.
enum class release_answer { released, not_mine };
struct release_reply {
  server_time now;
  release_answer what;
};
std::optional<release_reply> parse_release(const resp::value&);

struct inspect_reply {
  server_time now;
  std::optional<holder> held;              // Empty: nobody, or a counted kind.
  std::chrono::milliseconds remaining{0};  // < 0: no expiry.
  std::optional<break_record> last_break{};
  bool breaking = false;                      // last_break names the present holder's token.
  std::string wrong_kind{};                   // Not empty: the key holds this type instead.
  std::optional<std::string> other_record{};  // Of a vote: it belongs to this list of servers; empty, to none.
  std::int64_t waiting = 0;                   // How many stand in line.
  std::vector<waiter_info> waiters{};         // The first of them.
  lock_kind kind = lock_kind::exclusive;
  // Of a counted kind: its room, what is taken of it, and the first of those who have it.
  int size = 0;
  int used = 0;
  std::vector<holder_info> holders{};
  std::vector<std::string> holder_ids{};  // The owner id of each: with several servers, whether it is the same grant.
  // Until the first of those ends of whom nothing is known, a newer version's or where what is kept of them is lost.
  std::optional<std::chrono::milliseconds> foreign_for{};
};
std::optional<inspect_reply> parse_inspect(const resp::value&);

// Of resize.
struct change_reply {
  server_time now;
  bool was_late = false;     // This copy had no effect.
  std::string wrong_kind{};  // Not empty: it was not done, because a key holds this type, or is of this kind.
};
std::optional<change_reply> parse_change(const resp::value&);

enum class break_answer { broken, not_held, changed_hands, foreign };
struct break_reply {
  server_time now;
  break_answer what;
};
std::optional<break_reply> parse_break(const resp::value&);

// Of quorum_record. Empty: it is written. Else what is there instead, which may be nothing.
struct record_reply {
  server_time now;
  std::optional<std::string> instead{};
};
std::optional<record_reply> parse_record_reply(const resp::value&);

// Why a server may have forgotten locks, and for how long that matters.
struct quarantined {
  std::chrono::milliseconds remaining;
  std::chrono::milliseconds began_ago;
  bool is_promotion;  // Else it restarted.
};
struct epoch_reply {
  server_time now;
  std::optional<quarantined> what{};  // Empty: nothing to wait for.
};
std::optional<epoch_reply> parse_epoch(const resp::value&);

// Shall whoever was answered this let the line go on (go_on()), because the script that it asked could not see all of
// it? A try that was not granted anything asks again instead.
bool goes_on(const command& asked, const resp::value& reply);

// The server's clock, whatever the reply says otherwise. Empty: an error, or no reply of ours.
std::optional<server_time> server_time_in(const resp::value&);

}  // namespace holdfast::script
