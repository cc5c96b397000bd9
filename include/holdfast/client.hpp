// SPDX-License-Identifier: Apache-2.0
// The way to one server: acquire, look, break.
#pragma once

#include <holdfast/error.hpp>
#include <holdfast/info.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lease_set.hpp>
#include <holdfast/options.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {

namespace detail {
class client_state;
}

// A client of one Redis, of the primary that its sentinels name, or of a cluster. Two connections at most (one driven
// by the calling threads, and while none calls by a thread of ours; one by a keeper thread that renews), however many
// threads and leases, and a third from the first waiter on, on which the server says whose turn it is; they are made
// with the first call that needs them, and again after they broke. One more to each sentinel, by a thread of its own.
// Of a cluster: all this to each primary, and a thread that asks them. Of a quorum: two to each server, with one keeper
// thread for all; and beside it a client of one server, with what that has, for each server whose line is waited in,
// and one for each once list, break_lock, diagnose or declare_nothing_forgotten is called. Every member is safe from
// any thread (docs/threads.md).
//
// Each call has an overload that throws holdfast::error and one that sets a std::error_code and never throws it;
// std::bad_alloc aside. Unknown is an outcome of its own: see outcome::unknown. Where the system gives this process no
// more threads it is not an errc but the system's std::errc::resource_unavailable_try_again (docs/errors.md).
//
// Destroying a client while leases are out is allowed: they keep what they need and go on renewing. Destroy it in
// the process that made it: after fork() the child's calls fail with errc::used_after_fork, and its destructor leaks.
class HOLDFAST_EXPORT client {
public:
  // Reads the server from HOLDFAST_URI; errc::no_server if it is not set.
  explicit client(client_options options = {});

  // redis://[user:password@]host[:port][/db], rediss:// with ?cacert=&cert=&key=, redis+unix:///path/to/socket[?db=N],
  // redis+sentinel://[user:password@]s1[:port],s2,s3/name[/db] or rediss+sentinel:// (all sentinels of the primary that
  // they call `name`: a majority of them decides which server that is, docs/topologies.md),
  // redis+cluster://a[:port],b,c or rediss+cluster:// (some nodes of a cluster; most of its primaries decide who serves
  // a lock),
  // redis+quorum://a[:port],b,c or rediss+quorum:// (servers that know nothing of each other; a majority of them
  // decides), local: or local:/directory. Throws errc::invalid_uri or errc::invalid_option, or errc::cannot_connect
  // where this process has no descriptors left; connects to nothing yet, except that local: finds or starts its server
  // here, which takes some 10 ms and is given up after client_options::timeout (errc::local_server); a start has a
  // second at least, and all of it 15 s at most.
  explicit client(std::string_view uri, client_options options = {});

  // No other thread may be inside a call of it. With leases out, or asynchronous calls under way, it returns at once,
  // and the last of them ends the threads. Otherwise it waits: 200 ms at most for what is still to be released in the
  // background (of a quorum, for each client of one server beside it, too) and for a start of a `local:` server that is
  // under way, which ends by itself behind that; and for the callbacks that are running or due, however long they take.
  // So do not hold what one of them waits for. On the callback thread itself it does not wait for callbacks.
  ~client();
  // A client that was moved from may only be destroyed or assigned to.
  client(client&&) noexcept;
  client& operator=(client&&) noexcept;

  // The lock now, or not at all. Empty: somebody else holds it, or waits for it. Asks once, within
  // client_options::timeout. After outcome::unknown the orphan, if there is one, is released in the background and ends
  // at the latest timeout + ttl after the call began. With an error_code: empty and `ec` clear is busy, empty and `ec`
  // set that it failed.
  [[nodiscard]] std::optional<lease> try_acquire(std::string_view name, const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> try_acquire(std::string_view name, const acquire_options& options,
                                                 std::error_code& ec);

  // The lock, after waiting for it in line (acquire_options::wait): first come, first served between processes (C7,
  // docs/protocol.md). Throws errc::timed_out when somebody else held it to the end. Whoever gives up, by time or by
  // acquire_options::cancel, leaves the line; if it was granted at that moment, the next one gets it. With an
  // error_code the optional is empty exactly when `ec` is set.
  [[nodiscard]] lease acquire(std::string_view name, const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> acquire(std::string_view name, const acquire_options& options,
                                             std::error_code& ec);

  // Several locks as one, all or nothing: waited for one after the other in the order of their bytes, so that two
  // callers cannot wait for each other, and renewed while the next one is waited for; one deadline for all (with a wait
  // of zero each is tried once, and has client_options::timeout for its answer). On failure what was taken is released,
  // in the background; that one of them was lost meanwhile ends the wait with its lease_* code. No names and duplicates
  // are errc::invalid_option. Otherwise as acquire; errc::timed_out also when the time went to taking the others.
  [[nodiscard]] lease_set acquire_all(const std::vector<std::string>& names, const acquire_options& options = {});
  [[nodiscard]] std::optional<lease_set> acquire_all(const std::vector<std::string>& names,
                                                     const acquire_options& options, std::error_code& ec);

  // Runs `body(lease&)` under the lock and releases it also when the body throws. The body's result is returned and
  // its exceptions pass unchanged. The body should watch lease.lost(); that the lease was lost meanwhile is not
  // thrown, because the work is done: ask the lease before you rely on it. The release waits as lease::release() does,
  // and how it ended is not told.
  // Throws errc::timed_out when somebody else held it to the end; the body has not run then.
  template <std::invocable<lease&> Body>
  auto synchronize(std::string_view name, Body&& body, const acquire_options& options = {}) {
    lease held = acquire(name, options);
    const releaser at_end{held};
    return std::invoke(std::forward<Body>(body), held);
  }

  // The same, but that somebody else held it to the end is a value: false, or for a body with a result an empty
  // optional; the body has not run then. Of a reference the result is a copy, as synchronize's, made under the lock.
  // Every other failure is thrown, also a time-out that comes out of the body: a nested lock's is never taken for this
  // one's.
  template <std::invocable<lease&> Body>
  [[nodiscard]] auto try_synchronize(std::string_view name, Body&& body, const acquire_options& options = {}) {
    using result = std::remove_cvref_t<std::invoke_result_t<Body, lease&>>;
    auto held = acquire_in_time(name, options);
    if constexpr (std::is_void_v<result>) {
      if (!held) return false;
      const releaser at_end{*held};
      std::invoke(std::forward<Body>(body), *held);
      return true;
    } else {
      if (!held) return std::optional<result>{};
      const releaser at_end{*held};
      return std::optional<result>{std::invoke(std::forward<Body>(body), *held)};
    }
  }

  // Who holds it, and since when. A name that nobody holds is not an error: `held` is false. Of a quorum a majority
  // must answer (errc::no_quorum, or why they refuse us: errc::no_permission, say) as servers of our list:
  // errc::other_quorum when it was replaced, errc::quarantined when it is not open yet. So it is for list and
  // break_lock.
  [[nodiscard]] lock_info inspect(std::string_view name);
  [[nodiscard]] std::optional<lock_info> inspect(std::string_view name, std::error_code& ec);
  // The same, but that the server has only `timeout` to answer, where that is shorter than client_options::timeout: for
  // a look that is not worth waiting for. Zero or less is no time: errc::server_silent (without a connection
  // what that fails of, as ever), of a quorum errc::no_quorum, at once.
  [[nodiscard]] std::optional<lock_info> inspect(std::string_view name, std::chrono::milliseconds timeout,
                                                 std::error_code& ec);

  // Every held lock whose name matches `glob`, as Redis has them: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` to escape; `?`
  // and `[...]` are one byte, of which a letter beyond ASCII has several. By SCAN: not a snapshot, and
  // O(keys of the database). It asks many questions, and each has client_options::timeout. Needs naming::holdfast
  // (errc::invalid_option under plain) and +scan. Sorted by name. Of a cluster errc::cannot_connect if this process has
  // too few descriptors for one of the primaries: the rest of them would not be all.
  [[nodiscard]] std::vector<lock_info> list(std::string_view glob = "*");
  [[nodiscard]] std::vector<lock_info> list(std::string_view glob, std::error_code& ec);

  // Ends somebody's hold, if it is still the one with this token: errc::changed_hands or errc::not_held otherwise. Of a
  // quorum on each server that has it: a majority is enough; errc::reply_lost when fewer have done it and others could
  // not, or one did not answer: then it may be broken, and break it again.
  // The servers of a quorum are asked one after the other, and each has client_options::timeout. Recorded with your
  // label and reason, unless the server's memory is full. See break_mode for what the holder may still believe.
  void break_lock(std::string_view name, fencing_token seen, const break_options& options = {});
  void break_lock(std::string_view name, fencing_token seen, const break_options& options, std::error_code& ec);

  // Looks at the server with a lock's eyes: role, version, eviction policy, permissions, round trip, clock.
  // Findings are values; throws only when the server cannot be reached or refuses us: of a cluster, when none of its
  // primaries answers. It asks some twenty questions, each of which has client_options::timeout, and tries a lock of
  // its own for 3 s at most; of a cluster each primary, and several that are silent take no longer than one.
  [[nodiscard]] diagnosis diagnose();
  [[nodiscard]] std::optional<diagnosis> diagnose(std::error_code& ec);

  // You know that the server has forgotten no lock: it was started for the first time, or it was restarted or promoted
  // and has kept every write. Ends its quarantine for every client with our prefix in this database, until the next
  // restart or promotion. If it is not so, two may hold a lock until the forgotten leases end. Of a cluster and of a
  // quorum each server is told that can be reached, one after the other, each with client_options::timeout; then the
  // first failure is thrown, and the others know: say it again. A server that cannot keep it, because its memory is
  // full or it takes no writes, is such a failure (errc::server_refused). Nobody is told where most of a quorum's
  // servers belong to another list (errc::other_quorum).
  void declare_nothing_forgotten();
  void declare_nothing_forgotten(std::error_code& ec);

  // The server as it may be shown: without user and password.
  const std::string& endpoint() const noexcept;

private:
  friend class detail::client_state;
  friend class mutex;
  friend class recursive_mutex;
  friend class semaphore;
  friend class shared_mutex;

  // Releases also when the body throws.
  struct releaser {
    lease& held;
    ~releaser() {
      try {
        if (held) held.release();
      } catch (...) {  // A forked child: the lease is the parent's.
      }
    }
  };
  // acquire(), with an empty optional for errc::timed_out; everything else is thrown.
  std::optional<lease> acquire_in_time(std::string_view name, const acquire_options& options);

  std::shared_ptr<detail::client_state> state_;
};

}  // namespace v0
}  // namespace holdfast
