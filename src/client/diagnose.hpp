// SPDX-License-Identifier: Apache-2.0
// Looks at a server with a lock's eyes, for diagnose() and `holdfast doctor`.
#pragma once

#include "client/client_state.hpp"

namespace holdfast {
inline namespace v0 {
namespace detail {

// The name that is tried. One for all who ask: its fence stays for a week, and a probe may ask every minute. Those who
// ask at once try one after the other.
inline std::string_view probe_of(const client_state& state) {
  constexpr std::string_view usual = "holdfast-doctor";
  const bool is_refused = state.options().names == naming::plain && usual.starts_with(state.options().prefix);
  return is_refused ? "doctor-of-holdfast" : usual;
}

// Who has the library alone has the page, and no command.
constexpr auto way_out_of_denial = "give the user the rule of `holdfast help acl` (docs/acl.md)";

diagnosis diagnose(client_state&);
// Takes a lock, renews it, lets another one wait for it and gives it back.
void try_a_lock(client_state&, diagnosis& result);
// Of a quorum: what is to be said of each of its servers.
void diagnose_quorum(client_state&, diagnosis& result);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
