// SPDX-License-Identifier: Apache-2.0
// What can go wrong, and what to do about it.
//
// "Somebody else holds it" is not here: that is an expected answer, and try_acquire gives an empty optional for it.
// `errc` says why, one value per cause that a person could act on; `outcome` says what to do, and is what programs
// compare with:
//
//   catch (const holdfast::error& e) {
//     if (e.code() == holdfast::outcome::unknown) ...   // may or may not have taken effect: never fail open on it
//   }
//
// docs/errors.md lists every value with its cause and its way out.
#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>

namespace holdfast {
inline namespace v0 {

// Why. Values are append-only: they go into logs.
enum class errc {
  // Rejected before anything was sent.
  invalid_name = 1,  // A lock name that is empty, too long, not UTF-8, or has a control character.
  invalid_option,    // A ttl, wait, size or flag outside its range; or, after trying, a ttl shorter than the way.
  invalid_uri,       // A server URI that does not parse, or a scheme we do not serve.
  no_server,         // No URI was given and HOLDFAST_URI is not set.
  used_after_fork,   // The handle belongs to the parent process. Make a client of your own after fork().
  empty_handle,      // The lease was moved from or already released.

  // Waiting ended without the lock.
  timed_out,            // Someone else held the lock for the whole of `wait`.
  cancelled,            // Your stop_token asked us to stop, and no request of ours was unanswered.
  cancelled_in_flight,  // It asked while a request was unanswered; we clean up in the background.

  // We do not know what the server did.
  reply_lost,        // The request left; the answer never came, or so late that the grant was given back.
  unexpected_reply,  // The answer was not one that our scripts give, or not RESP2.

  // You held the lock and no longer do.
  lease_expired,  // The local deadline passed without a confirmed renewal.
  lease_gone,     // The server has no such lease any more: deleted, evicted, flushed, its clock stepped, or, of a
                  // quorum, its list of servers was replaced.
  lease_taken,    // The server says that another owner holds the lock.
  lease_broken,   // Somebody broke the lock on purpose (break_lock, `holdfast break`).

  // The server cannot be reached.
  cannot_resolve,   // The host name has no address.
  cannot_connect,   // Connection refused, no such socket, unreachable network.
  server_silent,    // It accepts connections and answers nothing in time.
  connection_lost,  // The connection ended and could not be made again in time.
  tls_failed,       // The TLS handshake failed: plain port, unknown authority, wrong host name, expired.

  // The server refuses us.
  no_password,     // It wants a password and none was given.
  wrong_password,  // It does not accept this user and password.
  no_permission,   // The ACL denies a command, a key or a channel; also inside scripts.

  // The server or the configuration is not what it must be.
  wrong_database,   // The database number does not exist there.
  not_a_primary,    // The server is a read-only replica.
  wrong_kind,       // The key holds something that is not this kind of lock.
  wrong_server,     // A sentinel, a server older than 6.2, another protocol, or a cluster's node: under redis:// one
                    // that does not own the key, under redis+cluster:// another than the cluster has there.
  script_mismatch,  // The server's digest of a script is not ours.
  fence_too_far,    // `min_fence` is more than a year ahead of the server's clock.
  local_server,     // The local: server or a lab cannot be started or used; the text says why.

  // The server cannot do it now.
  server_loading,  // It is loading its data, or its primary is down.
  server_busy,     // A script or a module blocks it.
  out_of_memory,   // maxmemory is reached and nothing may be evicted.
  server_refused,  // MISCONF, NOREPLICAS, too many clients, protected mode: its own words tell.
  clock_stepped,   // Its clock moved so that our requests are late or its stamps are not to be trusted.

  // Breaking a lock.
  not_held,       // There is nothing to break.
  changed_hands,  // The lock is held under another token than the one you saw. Look again.

  // Semaphores.
  other_size,  // The server keeps another size for it than you said, or you want more permits than it has.

  // The server may have forgotten locks.
  quarantined,  // It restarted or was promoted a moment ago: nothing is granted until forgotten leases have ended.

  // The server's replicas.
  not_replicated,  // Fewer than client_options::durability asks for confirmed it in time. A grant is given back.

  // Sentinel and Cluster.
  no_primary,  // No majority of the sentinels, or of a cluster's primaries, names one: too many are silent, or
               // disagree.

  // Quorum.
  no_quorum,     // Too few of its servers answered in time, or would vote.
  other_quorum,  // One of its servers belongs to another list of servers.

  // You held the lock and no longer do.
  lease_held_too_long,  // For as long as acquire_options::max_hold allows.
};

// What to do. Compare an error_code with one of these; `timed_out`, `denied`, `misconfigured` and `unreachable`
// are also `not_applied`.
enum class outcome {
  busy = 1,       // Somebody else holds it. No code is it: try_acquire says so by an empty optional and a clear `ec`.
  timed_out,      // Somebody else held it for as long as you were willing to wait.
  not_applied,    // The server was not changed by this call. Safe to try again.
  unknown,        // The server may or may not have changed. Do not act as if you held the lock, nor as if nobody did.
  lost,           // You held the lock and no longer do. Stop the protected work.
  unreachable,    // The server could not be reached in time.
  denied,         // Password or permission. Trying again will not help.
  misconfigured,  // Name, option, URI or server set-up. Trying again will not help.
};

HOLDFAST_EXPORT const std::error_category& error_category() noexcept;
HOLDFAST_EXPORT const std::error_category& outcome_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), error_category()}; }
inline std::error_condition make_error_condition(outcome o) noexcept {
  return {static_cast<int>(o), outcome_category()};
}

// The name of an errc as docs/errors.md spells it, "lease_taken". Static storage.
HOLDFAST_EXPORT const char* to_string(errc e) noexcept;

// What a person needs beside the code. Every field may be empty or zero. Passwords never appear here.
struct error_detail {
  std::string endpoint{};                   // The server: "redis://db1:6379/0", without user and password.
  std::string server_text{};                // The server's or the system's own words.
  std::string subject{};                    // The value that was wrong: a name, an option, a key, a user, a file.
  std::string why{};                        // One sentence more, when the code's own message does not say it.
  int attempts = 0;                         // How many times we tried.
  std::chrono::milliseconds elapsed{0};     // How long we tried.
  std::chrono::milliseconds may_remain{0};  // Of an unknown outcome: what it left taken ends within this, counted from
                                            // the end of the call. An upper bound: a whole ttl and more.
};

// What the throwing overloads throw. what() is one line: the message, the value, the server's words.
class HOLDFAST_EXPORT error : public std::system_error {
public:
  explicit error(std::error_code code, error_detail detail = {});
  ~error() override;
  error(const error&) noexcept;
  error& operator=(const error&) noexcept;

  const error_detail& detail() const noexcept { return *detail_; }

private:
  std::shared_ptr<const error_detail> detail_;  // Shared, so that copying an exception cannot throw.
};

}  // namespace v0
}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<holdfast::outcome> : std::true_type {};
