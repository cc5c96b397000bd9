// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include "environment.hpp"
#include "escape.hpp"
#include "lease_watch.hpp"
#include "message.hpp"
#include "uri.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

namespace holdfast::cli {
namespace {

// Up to the end of the first line, which a pipe may deliver in pieces. False: errno says why.
bool read_line(int fd, std::span<char> buffer, std::size_t& length) {
  while (length < buffer.size()) {
    const auto n = ::read(fd, buffer.data() + length, buffer.size() - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    length += static_cast<std::size_t>(n);
    if (std::memchr(buffer.data(), '\n', length) != nullptr) return true;
  }
  return true;
}

// The first line of `path`, which should be for our eyes only.
std::string read_password(const std::string& path, bool quiet) {
  const auto refuse = [&](const char* reason) {
    throw usage_error{fmt::format("--password-file: '{}': {}", visible_word(path), reason),
                      "a file of mode 0600 that this user can read, with the password in its first line"};
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) refuse(std::strerror(errno));
  struct stat seen {};
  std::array<char, 4096> buffer{};
  const bool known = ::fstat(fd, &seen) == 0;
  std::size_t length = 0;
  const int failure = read_line(fd, buffer, length) ? 0 : errno;
  ::close(fd);
  if (failure != 0) refuse(std::strerror(failure));
  std::string password{buffer.data(), length};
  explicit_bzero(buffer.data(), buffer.size());
  password.resize(std::min(password.size(), password.find_first_of("\r\n")));
  if (password.empty()) refuse("its first line is empty");
  if (known && S_ISREG(seen.st_mode) && (seen.st_mode & 077U) != 0 && !quiet)
    say_warning({.text = fmt::format("others can read the password file '{}'", visible(path)),
                 .fix = fmt::format("chmod 0600 {}", shell_quoted(visible(path)))});
  return password;
}

// How long a local: server may take to start, or to answer. Bounded by what was said to be a bound: a machine that
// swaps takes longer to start it than a server that runs may be silent.
std::chrono::milliseconds time_to_start(const settings& s, std::chrono::milliseconds timeout) {
  using namespace std::chrono_literals;
  const bool is_one_try = s.try_once || (s.wait && *s.wait == 0ms);
  const auto most = s.server_timeout || is_one_try ? timeout : std::max(timeout, 15s + 0ms);
  return s.wait && !is_one_try ? std::min(most, std::max(*s.wait, 10ms)) : most;
}

// A client gives its server for all else the time that it gives it for this. The one that is used has another.
void start_in_time(std::string_view uri, const settings& s, const client_options& options) {
  if (!without_blanks(uri).starts_with("local:")) return;
  auto starting = options;
  auto& within = starting.durability.timeout;
  // What is out of its range is to be refused before a server is started, and nothing else for the shorter time.
  const bool is_in_range =
      options.timeout <= std::chrono::hours{1} && (options.durability.replicas == 0 || within <= options.timeout / 2);
  if (is_in_range) {
    starting.timeout = time_to_start(s, options.timeout);
    within = std::min(within, starting.timeout / 2);
  }
  const client starter{uri, std::move(starting)};
}

}  // namespace

client_options options_of(const settings& s) {
  client_options options;
  if (s.prefix) options.prefix = *s.prefix;
  options.names = s.plain ? naming::plain : naming::holdfast;
  options.owner = s.owner;
  if (s.server_timeout) options.timeout = *s.server_timeout;
  if (s.max_ttl) options.max_ttl = *s.max_ttl;
  if (s.trusts_synced) options.quarantine = quarantine_mode::trust_every_write_is_synced;
  options.durability.replicas = s.replicas;
  if (s.replicas_timeout) options.durability.timeout = *s.replicas_timeout;
  if (!s.password_file.empty()) options.password = read_password(s.password_file, s.quiet);
  options.cacert = s.cacert;
  options.cert = s.cert;
  options.key = s.key;
  if (s.verbose) {
    options.log = [](const log_record& record) { try_say(visible(record.text)); };
  }
  return options;
}

std::optional<std::string_view> named_server(const settings& s) {
  if (!s.password_in_arguments.empty() && !s.quiet)
    say_warning({.text = fmt::format("the password in {} could be read by everybody on this machine (ps)",
                                     s.password_in_arguments),
                 .fix = "HOLDFAST_URI, REDISCLI_AUTH or --password-file"});
  if (s.uri) return *s.uri;
  const auto named = variable_if_set("HOLDFAST_URI");
  // Most often a variable that was not there, or a command that failed. Whoever wanted a shared lock must not get one
  // of this machine's instead.
  if (named && without_blanks(*named).empty())
    throw usage_error{named->empty() ? "HOLDFAST_URI is set and empty" : "HOLDFAST_URI is set, and blank",
                      "redis://HOST:PORT, local:, or unset it"};
  return named;
}

server open_server(const settings& s) { return open_server(s, options_of(s)); }

server open_server(const settings& s, client_options options) {
  const auto began_at = lease_watch::now();
  const auto named = named_server(s);
  auto prefix = options.prefix;
  const auto how = options.names;
  auto renewals = std::make_shared<renewal_news>();
  options.observe = renewals;
  start_in_time(named.value_or("local:"), s, options);
  if (named) return {client{*named, std::move(options)}, std::move(prefix), how, std::move(renewals), began_at};
  server opened{client{"local:", std::move(options)}, std::move(prefix), how, std::move(renewals), began_at};
  if (!s.quiet)
    say("no server named: these locks are yours on this machine alone; for a shared one: export "
        "HOLDFAST_URI=redis://HOST");
  return opened;
}

}  // namespace holdfast::cli
