// SPDX-License-Identifier: Apache-2.0
// Another list of servers for a quorum, while its locks are in use; `holdfast quorum replace` on the command line.
#pragma once

#include <holdfast/error.hpp>
#include <holdfast/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {

// What replace_quorum() has done, or does now.
struct replace_progress {
  enum class step {
    closed,   // `server` votes for clients of the old list no more; held locks are not renewed there.
    waits,    // For `time`: so long may leases of the old list live.
    opened,   // `server` votes for clients of the new list.
    away,     // `server` does not answer, for the reason in `why`; it is left out.
    goes_on,  // A majority of the old list was closed and one of the new list open: nothing is waited for again.
  };
  step what{};
  std::string server{};
  std::string why{};
  std::chrono::milliseconds time{0};
};

struct replace_options {
  // As the clients of the quorum have them; max_ttl and prefix above all. If servers know of a client with a larger
  // max_ttl, that one is waited for.
  client_options client{};
  // `from` was open, and a majority of its servers has forgotten that: they restarted without their data. A list of a
  // later generation than 1 grants nothing then, and nobody can win who would open it. Set, `to` may have the same
  // servers, and nobody asks whether `from` was open. If it never was, the list before it stays in use beside `to`:
  // false.
  bool reopen = false;
  // Called on the calling thread. What it throws ends the replacement there, and passes.
  std::function<void(const replace_progress&)> tell{};
  // Ends it with errc::cancelled: before the first server is changed, and nothing is then; or behind that in the wait,
  // when servers of the old list are closed, and the next call goes on with it.
  std::stop_token cancel{};
};

struct quorum_replacement {
  std::string uri{};                  // For clients from now on. Add user, password, cacert, cert and key.
  std::uint32_t generation = 0;       // Of the new list.
  std::vector<std::string> closed{};  // Of the old list. Those that are on the new one are open by now.
  std::vector<std::string> opened{};  // Of the new list.
  // Did not answer, or turned out to be another list's behind the first look. Clients of the new list open what is on
  // it and comes back without an open list; call again for one that keeps the old list, as open.
  std::vector<std::string> away{};
  std::chrono::milliseconds waited{0};
};

// Passes from the quorum `from` to the quorum `to` (two redis+quorum:// URIs; any number of servers may differ, and
// `from` has the generation that its clients have). Clients of `from` are refused from the first servers on
// (errc::other_quorum), and their leases end; those of `to` wait, or are refused with errc::quarantined, until a
// majority of `to` is open. In between lies max_ttl, so that no two ever hold a lock.
//
// It may be called again after it was killed or failed at any point, and goes on. Throws errc::invalid_uri;
// errc::no_quorum when fewer than a majority of either list answer: then, if that was so from the beginning, nothing
// has changed; errc::other_quorum when the servers belong to another list, another replacement has begun, or `from`, of
// a later generation than 1, is not open (replace_options::reopen).
HOLDFAST_EXPORT quorum_replacement replace_quorum(std::string_view from, std::string_view to,
                                                  const replace_options& options = {});

}  // namespace v0
}  // namespace holdfast
