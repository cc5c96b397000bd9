// SPDX-License-Identifier: Apache-2.0
// Looks at a server with a lock's eyes, for diagnose() and `holdfast doctor`.
#pragma once

#include "client/client_state.hpp"

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

// The name that is tried. One for all who ask: its fence stays for a week, and a probe may ask every minute. Those who
// ask at once try one after the other.
inline std::string_view probe_of(const client_state& state) {
  constexpr std::string_view usual = "holdfast-doctor";
  // Also of the names that begin with it, for the primaries of a cluster.
  const auto& prefix = state.options().prefix;
  const bool is_refused =
      state.options().names == naming::plain && (usual.starts_with(prefix) || prefix.starts_with(usual));
  return is_refused ? "doctor-of-holdfast" : usual;
}

// Who has the library alone has the page, and no command.
constexpr auto way_out_of_denial = "give the user the rule of `holdfast help acl` (docs/acl.md)";

// What an error is called, and what to do about it. Empty: nothing is known.
struct way_out {
  const char* code = "";
  std::string fix{};
};
way_out way_out_of(const error& e);

diagnosis diagnose(client_state&);
// Of a quorum, or of a cluster: what is to be said of each of its servers.
void diagnose_quorum(client_state&, diagnosis& result);
void diagnose_cluster(client_state&, diagnosis& result);

// For client_state::ask_all().
std::string request(std::initializer_list<std::string_view> words);

// ---- of one server, or of one primary of a cluster ----

// Throws what PING ends with.
void ping(client_state&, const std::shared_ptr<node>& whom);
void measure_round_trip(client_state&, const std::shared_ptr<node>& whom, diagnosis& result);
// Returns all of INFO; empty: it is hidden. `where`: as what it is named.
std::string judge_info_of(client_state&, const std::shared_ptr<node>& whom, const std::string& where,
                          diagnosis& result);
// Where that server's epoch is kept.
std::string epoch_key_of(const client_state&, const node& at);
void judge_settings(client_state&, const std::shared_ptr<node>& whom, std::string_view info, diagnosis& result);
// Throws why it cannot be seen, unless that is because it may not be.
void judge_quarantine(client_state&, const std::shared_ptr<node>& whom, diagnosis& result);

// Of its replicas there. `is_followed`: as of relied_on_next.
void judge_replicas_at(client_state&, const std::shared_ptr<node>& whom, const std::vector<net::tcp_address>& where,
                       bool is_followed, diagnosis& result);

// Of the server that serves the name `probe`.
void judge_clock(client_state&, std::string_view probe, diagnosis& result);
// Takes a lock of that name, renews it, lets another one wait for it and gives it back.
void try_a_lock(client_state&, std::string_view probe, diagnosis& result);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
