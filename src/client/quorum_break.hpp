// SPDX-License-Identifier: Apache-2.0
// A break of one lock on each of several servers that have a vote of its holder.
#pragma once

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class client_state;

struct vote_to_break {
  std::size_t node;
  fencing_token token;
};
struct silent_server {
  std::size_t node;
  std::string why;
};
// What a look at all servers finds of one grant, and who did not say whether he has anything of it.
struct votes_seen {
  std::vector<vote_to_break> votes{};
  std::vector<silent_server> silent{};
};
// `first`: what is known. `look`: looks again, and does not throw a holdfast::error. Throws what break_lock does.
void break_votes(client_state& state, const lock_name& name, const votes_seen& first,
                 const std::function<votes_seen()>& look, const break_options& options);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
