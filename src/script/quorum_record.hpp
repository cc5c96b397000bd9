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
//  ---------------------------+------------------------------------------------------------
//  none                       | counts; a vote writes the caller's
//  the caller's own           | counts
//  of an earlier generation   | counts; a vote writes the caller's, whose generation was opened when that was closed
//  any other, closed included | is refused, with what is stored
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

}  // namespace holdfast::script
