// SPDX-License-Identifier: Apache-2.0
// The scripts we ship: name, exact bytes, digest. The .lua files are the only copy; CMake embeds them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace holdfast::script {

enum class id {
  acquire,
  renew,
  release,
  inspect,
  break_lock,
  wait,
  look,
  leave,
  go_on,
  reserve,
  // Of semaphores and shared locks.
  wait_counted,
  look_counted,
  leave_counted,
  go_on_counted,
  renew_counted,
  release_counted,
  break_counted,
  downgrade,
  resize,
  // Of the server, not of a lock.
  epoch,
  // Of a quorum.
  vote,
  raise,
  quorum_record,
  vote_counted,
  raise_counted,
};
inline constexpr std::size_t count = 25;

struct source {
  id which;
  std::string_view name;  // "acquire"
  std::string_view text;
  std::string_view sha1;  // 40 hex digits of `text`, computed when it was embedded.
};

const source& find(id which);
std::span<const source> all();
// Those that every client needs: loaded with a connection if the server lacks them. The others go by text then.
std::span<const source> usual();

}  // namespace holdfast::script
