// SPDX-License-Identifier: Apache-2.0
// A break of one lock on each of several servers that have a vote of its holder.
#pragma once

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <cstddef>
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
// `silent`: who did not say whether they have one, and why. Throws what break_lock does.
void break_votes(client_state& state, const lock_name& name, const std::vector<vote_to_break>& votes,
                 const std::vector<std::string>& silent, const break_options& options);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
