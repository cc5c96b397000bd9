// SPDX-License-Identifier: Apache-2.0
#include "client/settings.hpp"

#include "net/tls_reader.hpp"
#include "net/tls_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <holdfast/detail/longest_wait.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

[[noreturn]] void refuse(errc code, std::string subject, std::string why) {
  error_detail detail;
  detail.subject = std::move(subject);
  detail.why = std::move(why);
  throw error{code, std::move(detail)};
}

void check_span(const char* field, milliseconds value, milliseconds least, milliseconds most) {
  if (value >= least && value <= most) return;
  refuse(errc::invalid_option, fmt::format("{} = {} ms", field, value.count()),
         fmt::format("it must be {} to {} ms", least.count(), most.count()));
}

void check_label(const char* field, const std::string& label) {
  if (label.size() <= 256) return;
  refuse(errc::invalid_option, fmt::format("{} of {} bytes", field, label.size()), "at most 256 bytes are kept");
}

void check_prefix(const std::string& prefix) {
  if (prefix.empty() || prefix.size() > 64) {
    refuse(errc::invalid_option, fmt::format("prefix of {} bytes", prefix.size()), "it must have 1 to 64 bytes");
  }
  const auto is_bad = [](char c) {
    return c <= ' ' || c > '~' || std::string_view{"{}%|*?[]\\"}.find(c) != std::string_view::npos;
  };
  if (std::any_of(prefix.begin(), prefix.end(), is_bad)) {
    refuse(errc::invalid_option, "prefix '" + prefix + "'",
           "it must be printable ASCII without space and without any of {}%|*?[]\\");
  }
}

void check_durability(const client_options& options) {
  const auto& [replicas, timeout] = options.durability;
  if (replicas < 0 || replicas > 100) {
    refuse(errc::invalid_option, fmt::format("durability.replicas = {}", replicas), "it must be 0 to 100");
  }
  // What waits for replicas longer than the call lasts could never say so.
  if (replicas > 0) check_span("durability.timeout", timeout, 1ms, options.timeout / 2);
}

void check_fits_quorum(const client_options& options) {
  if (options.quarantine != quarantine_mode::on) {
    refuse(errc::invalid_option, "quarantine off, with a quorum",
           "a server that forgot its vote would vote again, and two clients could each have a majority; leave it on");
  }
  if (options.durability.replicas > 0) {
    refuse(errc::invalid_option, fmt::format("durability.replicas = {}, with a quorum", options.durability.replicas),
           "the servers of a quorum are each other's safety; a replica of one of them must not take its place");
  }
  if (options.names == naming::plain) {
    refuse(errc::invalid_option, "plain naming, with a quorum",
           "other libraries would not ask for a majority in our way, and cannot know a vote from a lock");
  }
}

// Whoever names them believes that he speaks TLS, and a password would go out for all to read.
void check_speaks_tls(const client_options& options) {
  const auto check = [](const char* field, const std::string& path) {
    if (path.empty()) return;
    refuse(errc::invalid_option, fmt::format("{} '{}'", field, path),
           "it is for TLS, and the URI's scheme is one without: write rediss: for redis:");
  };
  check("cacert", options.cacert);
  check("cert", options.cert);
  check("key", options.key);
}

// Before connecting, so that a typing error is not reported as trouble with the server.
void check_readable(const char* field, const std::string& path) {
  if (path.empty()) return;
  // As whoever reads it does, with the rights that the program has then. Neither access(2), which goes by those of its
  // starter, nor with AT_EACCESS, which a sandbox may refuse that knows no faccessat2.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int trouble = file < 0 ? errno : 0;
  std::string why = trouble != 0 ? std::generic_category().message(trouble) : "";
  if (trouble == EMFILE || trouble == ENFILE || trouble == ENOMEM) {  // That passes.
    error_detail detail;
    detail.server_text = fmt::format("{} '{}': {}", field, path, why);
    throw error{errc::cannot_connect, std::move(detail)};
  }
  struct stat seen {};
  if (file >= 0 && ::fstat(file, &seen) == 0) {
    if (S_ISDIR(seen.st_mode)) why = std::generic_category().message(EISDIR);
    if (S_ISFIFO(seen.st_mode)) why = "it is a pipe, and each connection reads it anew: a file is needed";
  }
  if (file >= 0) ::close(file);
  if (!why.empty()) refuse(errc::invalid_option, fmt::format("{} '{}'", field, path), why);
}

// Likewise, and so that nobody is asked for a pass phrase on the terminal of a service.
void check_not_encrypted(const net::tls_files& files) {
  const auto why = net::why_encrypted(files);
  if (why.empty()) return;
  refuse(errc::invalid_option, fmt::format("key '{}'", files.key.empty() ? files.cert : files.key), why);
}

std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

// By the server's clock, which may run so much faster than the holder's.
std::chrono::milliseconds hold_of(const client_options& options) {
  const double ms = static_cast<double>(options.max_ttl.count()) * (1 + options.clock_drift);
  return milliseconds{static_cast<std::int64_t>(std::ceil(ms))} + 2ms;
}

settings resolve(std::optional<std::string_view> uri, client_options options) {
  check_prefix(options.prefix);
  check_span("timeout", options.timeout, 10ms, 1h);
  check_span("max_ttl", options.max_ttl, 100ms, 24h);
  check_span("hand_over_span", options.hand_over_span, 0ms, 1s);
  if (options.hand_overs < 0 || options.hand_overs > 1000) {
    refuse(errc::invalid_option, fmt::format("hand_overs = {}", options.hand_overs), "it must be 0 to 1000");
  }
  check_label("owner", options.owner);
  check_durability(options);
  if (!(options.clock_drift >= 0.001 && options.clock_drift <= 0.2)) {
    refuse(errc::invalid_option, fmt::format("clock_drift = {}", options.clock_drift), "it must be 0.001 to 0.2");
  }

  const std::string named = uri ? std::string{*uri} : from_environment("HOLDFAST_URI");
  if (named.empty()) {
    if (!uri) refuse(errc::no_server, "HOLDFAST_URI", "set it, or name the server: redis://HOST:PORT");
    refuse(errc::invalid_uri, "an empty URI", "write redis://HOST:PORT");
  }
  error_detail why;
  auto server = parse_uri(named, why);
  if (!server) throw error{errc::invalid_uri, std::move(why)};

  if (!options.user.empty()) server->who.user = options.user;
  if (!options.password.empty()) server->who.password = options.password;
  if (server->who.password.empty() && !server->is_local) server->who.password = from_environment("REDISCLI_AUTH");
  if (!server->where.uses_tls) check_speaks_tls(options);
  if (!options.cacert.empty()) server->where.tls.cacert = options.cacert;
  if (!options.cert.empty()) server->where.tls.cert = options.cert;
  if (!options.key.empty()) server->where.tls.key = options.key;
  if (auto& set = server->cluster) {
    set->who = server->who;
    set->tls = server->where.tls;
  }
  if (auto& set = server->sentinels) {
    const auto or_else = [](const std::string& given, const char* name) {
      return given.empty() ? from_environment(name) : given;
    };
    set->who.user = or_else(options.sentinel_user, "HOLDFAST_SENTINEL_USER");
    set->who.password = or_else(options.sentinel_password, "HOLDFAST_SENTINEL_PASSWORD");
    set->tls = server->where.tls;
  }
  if (!server->quorum.empty()) check_fits_quorum(options);
  for (auto& one : server->quorum) one.tls = server->where.tls;
  check_readable("cacert", server->where.tls.cacert);
  check_readable("cert", server->where.tls.cert);
  check_readable("key", server->where.tls.key);
  if (server->where.uses_tls) net::tls_session::keep_openssl();  // Before whatever else begins OpenSSL.
  check_not_encrypted(server->where.tls);
  return {std::move(options), std::move(*server)};
}

void check(const acquire_options& what, const client_options& within) {
  check_span("ttl", what.ttl, 100ms, within.max_ttl);
  // A renewal that finds its replicas slow must have time to be tried again.
  if (within.durability.replicas > 0 && what.ttl < 4 * within.durability.timeout) {
    refuse(errc::invalid_option, fmt::format("ttl = {} ms", what.ttl.count()),
           fmt::format("with replicas it must be {} ms or more, four times durability.timeout",
                       4 * within.durability.timeout.count()));
  }
  if (what.wait) check_span("wait", *what.wait, 0ms, longest_wait);
  if (what.max_hold) check_span("max_hold", *what.max_hold, what.ttl, 24h * 366);
  check_label("owner", what.owner);
  if (what.min_fence.value() >= fencing_token::max_value) {
    refuse(errc::invalid_option, "min_fence = " + what.min_fence.to_string(), "it must be below 2^53 - 1");
  }
}

void check_no_permits(const acquire_options& what) {
  if (what.permits == 1) return;
  refuse(errc::invalid_option, fmt::format("permits = {}", what.permits), "only a semaphore has permits to count");
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
