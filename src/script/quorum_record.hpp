// SPDX-License-Identifier: Apache-2.0
// To which list of servers a server belongs, as a value: what vote.lua compares, so that two lists that differ by
// mistake cannot both find a majority (P26), and `quorum replace` can pass from one to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::script {

//  stored on the server       | the caller's vote or renewal
//  ---------------------------+------------------------------------------------------------------------------
//  none                       | counts if it is of generation 1, and a vote writes it; else it is not open yet
//  the caller's own           | counts
//  closed, of his generation  | is not open yet, for whichever list it was closed: one of them comes to be open
//  of an earlier generation   | is not open yet; a renewal counts
//  any other                  | is refused, with what is stored
struct quorum_record {
  std::uint32_t generation = 1;  // One more with each `quorum replace`. At most most_generations.
  bool is_open = true;           // Closed: nobody's votes and renewals count here.
  std::string servers{};         // Host and port of each, sorted, with commas between them.

  friend bool operator==(const quorum_record&, const quorum_record&) = default;
};
inline constexpr std::uint32_t most_generations = 999'999'999;

// `v1|1|open|10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379`
std::string text_of(const quorum_record& record);
// Empty: it is none of ours.
std::optional<quorum_record> parse_quorum_record(std::string_view text);

// Does a server that keeps `stored`, which may be empty, say "not open yet" above of `wanted`, and no more?
bool is_not_open_yet(std::string_view stored, const quorum_record& wanted);

// If so: may a client open it that knows that a majority is open for `wanted`? Not over an open list of an earlier
// generation, which may be another quorum's, in use: whether somebody has closed that one `quorum replace` sees.
bool may_open(std::string_view stored, const quorum_record& wanted);

// For people: why nothing of `ours` counts on a server that keeps `stored`, which may be empty.
std::string why_it_does_not_count(std::string_view stored, const quorum_record& ours);

}  // namespace holdfast::script
