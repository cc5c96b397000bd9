// SPDX-License-Identifier: Apache-2.0
// The two categories of holdfast/error.hpp and the table that ties them: what each errc is called, says and means.
// docs/errors.md is the same table for people; a test holds them together.
#include "client/one_line.hpp"

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace holdfast {
inline namespace v0 {

namespace {

struct meaning {
  errc code;
  const char* name;
  const char* message;
  outcome first;
  outcome also;  // The same as `first` where there is only one.
};

using enum outcome;

constexpr std::array meanings{
    meaning{errc::invalid_name, "invalid_name", "not a lock name", misconfigured, not_applied},
    meaning{errc::invalid_option, "invalid_option", "option out of range", misconfigured, not_applied},
    meaning{errc::invalid_uri, "invalid_uri", "not a server URI", misconfigured, not_applied},
    meaning{errc::no_server, "no_server", "no server named and HOLDFAST_URI is not set", misconfigured, not_applied},
    meaning{errc::used_after_fork, "used_after_fork", "this handle belongs to the parent process", misconfigured,
            not_applied},
    meaning{errc::empty_handle, "empty_handle", "this lease handle is empty", misconfigured, not_applied},
    meaning{errc::timed_out, "timed_out", "somebody else held the lock all the time", timed_out, not_applied},
    meaning{errc::cancelled, "cancelled", "the wait was cancelled", not_applied, not_applied},
    meaning{errc::cancelled_in_flight, "cancelled_in_flight",
            "the wait was cancelled while a request was unanswered; it is cleaned up in the background", unknown,
            unknown},
    meaning{errc::reply_lost, "reply_lost", "the request was sent and not answered; it may have taken effect", unknown,
            unknown},
    meaning{errc::unexpected_reply, "unexpected_reply", "the server gave an answer that none of our scripts gives",
            unknown, unknown},
    meaning{errc::lease_expired, "lease_expired", "no renewal was confirmed in time", lost, lost},
    meaning{errc::lease_gone, "lease_gone", "the server does not have the lease any more", lost, lost},
    meaning{errc::lease_taken, "lease_taken", "another owner holds the lock now", lost, lost},
    meaning{errc::lease_broken, "lease_broken", "somebody broke the lock", lost, lost},
    meaning{errc::lease_held_too_long, "lease_held_too_long", "the lock was held for as long as max_hold allows", lost,
            lost},
    meaning{errc::cannot_resolve, "cannot_resolve", "the host name cannot be resolved", unreachable, not_applied},
    meaning{errc::cannot_connect, "cannot_connect", "cannot connect", unreachable, not_applied},
    meaning{errc::server_silent, "server_silent", "the server does not answer", unreachable, not_applied},
    meaning{errc::connection_lost, "connection_lost", "the connection was lost and could not be made again in time",
            unreachable, not_applied},
    meaning{errc::tls_failed, "tls_failed", "the TLS handshake failed", unreachable, not_applied},
    meaning{errc::no_password, "no_password", "the server wants a password and none was given", denied, not_applied},
    meaning{errc::wrong_password, "wrong_password", "the server rejects this user and password", denied, not_applied},
    meaning{errc::no_permission, "no_permission", "the server's ACL forbids it", denied, not_applied},
    meaning{errc::wrong_database, "wrong_database", "there is no such database", misconfigured, not_applied},
    meaning{errc::not_a_primary, "not_a_primary", "the server is a read-only replica", misconfigured, not_applied},
    meaning{errc::wrong_kind, "wrong_kind", "the key holds something that is not this kind of lock", misconfigured,
            not_applied},
    meaning{errc::wrong_server, "wrong_server", "this server cannot keep this lock", misconfigured, not_applied},
    meaning{errc::script_mismatch, "script_mismatch", "the server's digest of a script is not ours", misconfigured,
            not_applied},
    meaning{errc::fence_too_far, "fence_too_far", "min_fence is more than a year ahead of the server's clock",
            misconfigured, not_applied},
    meaning{errc::local_server, "local_server", "a local: server or a lab cannot be used", unreachable, not_applied},
    meaning{errc::server_loading, "server_loading", "the server is not ready yet", not_applied, not_applied},
    meaning{errc::server_busy, "server_busy", "a script or a module blocks the server", not_applied, not_applied},
    meaning{errc::out_of_memory, "out_of_memory", "the server's memory is full", not_applied, not_applied},
    meaning{errc::server_refused, "server_refused", "the server refused", not_applied, not_applied},
    meaning{errc::clock_stepped, "clock_stepped", "the server's clock runs away from ours", not_applied, not_applied},
    meaning{errc::not_held, "not_held", "nobody holds the lock", not_applied, not_applied},
    meaning{errc::changed_hands, "changed_hands", "the lock is held under another token than the one you saw",
            not_applied, not_applied},
    meaning{errc::other_size, "other_size", "the semaphore has another size on the server", misconfigured, not_applied},
    meaning{errc::quarantined, "quarantined", "the server may have forgotten locks, so nothing is granted yet",
            not_applied, not_applied},
    meaning{errc::not_replicated, "not_replicated", "too few replicas confirmed it in time", not_applied, not_applied},
    meaning{errc::no_primary, "no_primary",
            "no majority of the sentinels, or of the cluster's primaries, names a primary", unreachable, not_applied},
    meaning{errc::no_quorum, "no_quorum", "too few servers of the quorum voted", unreachable, not_applied},
    meaning{errc::other_quorum, "other_quorum", "a server belongs to another list of servers", misconfigured,
            not_applied},
};

const meaning* find(int value) noexcept {
  const auto* it = std::find_if(meanings.begin(), meanings.end(),
                                [&](const meaning& m) { return static_cast<int>(m.code) == value; });
  return it == meanings.end() ? nullptr : it;
}

class errc_category final : public std::error_category {
public:
  const char* name() const noexcept override { return "holdfast"; }

  std::string message(int value) const override {
    const meaning* m = find(value);
    return m ? m->message : "unknown holdfast error " + std::to_string(value);
  }

  std::error_condition default_error_condition(int value) const noexcept override {
    const meaning* m = find(value);
    return m ? make_error_condition(m->first) : std::error_condition{value, *this};
  }

  bool equivalent(int value, const std::error_condition& condition) const noexcept override {
    if (condition.category() != outcome_category()) return default_error_condition(value) == condition;
    const meaning* m = find(value);
    if (!m) return false;
    const auto wanted = static_cast<outcome>(condition.value());
    return m->first == wanted || m->also == wanted;
  }
};

class outcome_names final : public std::error_category {
public:
  const char* name() const noexcept override { return "holdfast.outcome"; }

  std::string message(int value) const override {
    switch (static_cast<outcome>(value)) {
      case busy: return "somebody else holds the lock";
      case timed_out: return "somebody else held the lock all the time";
      case not_applied: return "the server was not changed";
      case unknown: return "the server may or may not have changed";
      case lost: return "the lease was lost";
      case unreachable: return "the server could not be reached";
      case denied: return "the server refuses this user";
      case misconfigured: return "name, option, URI or server are not what they must be";
    }
    return "unknown outcome " + std::to_string(value);
  }
};

std::string one_line(const error_detail& d) {
  std::string text;
  for (const auto* part : {&d.subject, &d.why, &d.endpoint, &d.server_text}) {
    if (part->empty()) continue;
    if (!text.empty()) text += "; ";
    text += *part;
  }
  return detail::on_one_line(text);
}

// Without words before it the message would begin with ": ".
std::system_error with_words(std::error_code code, const std::string& words) {
  return words.empty() ? std::system_error{code} : std::system_error{code, words};
}

// Codes may be asked what they are by whatever ends last in the program.
template <class T>
union never_destroyed {
  constexpr never_destroyed() : what{} {}
  ~never_destroyed() {}
  T what;
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const never_destroyed<errc_category> category;
  return category.what;
}

const std::error_category& outcome_category() noexcept {
  static const never_destroyed<outcome_names> category;
  return category.what;
}

const char* to_string(errc e) noexcept {
  const meaning* m = find(static_cast<int>(e));
  return m ? m->name : "unknown";
}

error::error(std::error_code code, error_detail detail)
    : std::system_error{with_words(code, one_line(detail))},
      detail_{std::make_shared<const error_detail>(std::move(detail))} {}

error::~error() = default;
error::error(const error&) noexcept = default;
error& error::operator=(const error&) noexcept = default;

#define HOLDFAST_STRINGIFY_(x) #x
#define HOLDFAST_STRINGIFY(x) HOLDFAST_STRINGIFY_(x)

const char* version() noexcept {
  return HOLDFAST_STRINGIFY(HOLDFAST_VERSION_MAJOR) "." HOLDFAST_STRINGIFY(
      HOLDFAST_VERSION_MINOR) "." HOLDFAST_STRINGIFY(HOLDFAST_VERSION_PATCH);
}

#ifdef _GLIBCXX_DEBUG
const char detail::library_is_compiled_with_GLIBCXX_DEBUG = 1;
#endif

}  // namespace v0
}  // namespace holdfast
