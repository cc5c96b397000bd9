// SPDX-License-Identifier: Apache-2.0
// The texts for a server that cannot be reached, which are most of what anybody ever reads of docs/errors.md; and the
// pieces that all texts are made of.
#include "duration.hpp"
#include "escape.hpp"
#include "fault_pieces.hpp"
#include "option_words.hpp"

#include <holdfast/options.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::cli {
namespace {

// "key 'x'", "user 'x'" and "'x'" are x, for sentences with quotes of their own.
std::string_view unquoted(std::string_view subject) {
  const auto open = subject.find('\'');
  const bool has_kind = open == 0 || subject.starts_with("key '") || subject.starts_with("user '");
  if (!has_kind || subject.size() < open + 2 || subject.back() != '\'') return subject;
  return subject.substr(open + 1, subject.size() - open - 2);
}

// What is in its quotes may be a lock's name, or a path.
std::string shown(std::string_view subject) {
  const auto bare = unquoted(subject);
  const auto begin = subject.size() == bare.size() ? 0 : subject.find('\'') + 1;
  return visible(subject.substr(0, begin)) + visible_path(bare) + visible(subject.substr(begin + bare.size()));
}

// "lock name 'x' has a control character".
bool has_name_in_why(const error& e) { return e.code() == errc::invalid_name; }

// The prefix that is everybody's need not be typed.
server_words server_of(const fault_context& context) {
  const bool is_default = context.prefix == client_options{}.prefix;
  return {
      .uri = context.uri_option, .prefix = is_default ? std::string_view{} : context.prefix, .files = context.files};
}

// For commands that change something (options.hpp).
server_words meant_server_of(const fault_context& context) {
  auto which = server_of(context);
  which.uri = context.uri;
  return which;
}

server_words words_of_init(const fault_context& context) {
  auto which = meant_server_of(context);
  if (context.max_ttl) which.max_ttl = to_option(*context.max_ttl);
  return which;
}

// "127.0.0.1:7001 of redis+cluster://a,b,c".
std::string whom_it_asked(const error& e, const std::string& server, const std::string& subject) {
  const bool is_of_node = e.code() == outcome::unreachable || e.code() == errc::no_password;
  if (!is_of_node || subject.empty() || server.find("+cluster://") == server.npos) return server;
  return fmt::format("{} of {}", subject, server);
}

bool is_local(const pieces& p) { return p.server.starts_with("local:"); }
bool is_socket(const pieces& p) { return p.server.starts_with("redis+unix:"); }
bool is_plain_tcp(const pieces& p) { return !is_local(p) && !is_socket(p) && !p.server.starts_with("rediss"); }

// Of local:, and of a directory that was named.
std::string of_local(const pieces& p, std::string_view what) {
  return fmt::format("holdfast local {}{}", what, p.server == "local:" ? "" : " DIRECTORY");
}

// The library gives the system's words, and those are the number; of a call that it names, behind a colon.
bool says(const pieces& p, int number) {
  const auto message = std::generic_category().message(number);
  return p.words == message || p.words.ends_with(": " + message);
}

// Another server would help as little.
bool is_ours_to_mend(const pieces& p) {
  return says(p, EMFILE) || says(p, ENFILE) || says(p, ENOMEM) || says(p, ENOBUFS) || says(p, EADDRNOTAVAIL);
}

// Why, and what to do. Not everything that keeps us from connecting is far away.
std::pair<std::string, std::string> about_connect(const pieces& p) {
  if (says(p, EMFILE) || says(p, ENFILE))
    return {"this process, or this machine, has no descriptor left; nobody was asked", way_to_descriptors};
  if (is_ours_to_mend(p))
    return {"this machine is out of memory, or of local addresses; nobody was asked", "look what uses them up (ss -s)"};
  const bool is_forbidden = says(p, EACCES) || says(p, EPERM);
  if (is_local(p))
    return {is_forbidden ? "the modes of the socket and of its directory do not let this user in"
                         : "it was stopped, or it has ended",
            is_forbidden ? of_local(p, "status")
                         : fmt::format("run it again, which starts it; or: {}", of_local(p, "start"))};
  if (is_socket(p)) {
    if (is_forbidden)
      return {"the modes of the socket and of its directory do not let this user in",
              "redis.conf: unixsocketperm 770, and this user in the socket's group"};
    return {says(p, ENOENT) ? "there is no such file" : "nobody listens on it",
            "start it (redis-server --unixsocket PATH)"};
  }
  if (is_forbidden) return {"a rule of this machine forbids it: a firewall or a sandbox", "permit it there"};
  return {"nothing listens there, or it is cut off", "start it (redis-server --port PORT)"};
}

const char* way_to_sentinels_that_agree(std::string_view words) {
  const auto say = [&](std::string_view what) { return words.find(what) != words.npos; };
  if (say("it knows no primary '"))
    return "name the primary in the URI as they do: redis-cli -p 26379 SENTINEL MASTERS; and all of them";
  if (say(": not a reply we understand"))
    return "what gives such a reply is no sentinel: their port is 26379 unless they say another; and name all of them";
  return "name all of its sentinels in the URI; look whether they run: redis-cli -p 26379 SENTINEL CKQUORUM NAME";
}

std::string without_percents(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const auto* digits = text.data() + i + 1;
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += is_code ? static_cast<char>(value) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

// Of "redis+unix:///run/s/0", whose end was to be the database, as it is in redis://. Why, and what to do.
std::pair<std::string, std::string> about_no_directory(const pieces& p) {
  const std::string_view uri = std::string_view{p.server}.substr(0, p.server.find('?'));
  const auto begin = uri.find("://") + 3;
  for (auto slash = uri.find('/', begin + 1); slash != uri.npos; slash = uri.find('/', slash + 1)) {
    const auto path = without_percents(uri.substr(begin, slash - begin));
    struct stat seen {};
    if (::stat(path.c_str(), &seen) != 0 || S_ISDIR(seen.st_mode)) continue;
    if (!S_ISSOCK(seen.st_mode))
      return {fmt::format("'{}' is no directory", visible(path)), "the path of a socket: redis+unix:///PATH"};
    const auto behind = uri.substr(slash + 1);
    const auto* database = behind.empty() ? "0" : "N";
    const bool is_number = !behind.empty() && behind.find_first_not_of("0123456789") == behind.npos;
    const auto query = fmt::format("?db={}", is_number ? behind : database);
    return {fmt::format("'{}' is a socket and no directory; the database is {}", visible(path), query),
            fmt::format("{}{}", uri.substr(0, slash), query)};
  }
  return {"a part of its path is no directory", "the path of a socket: redis+unix:///PATH"};
}

// What keeps them is in `why` (src/engine/quorum_acquire.cpp).
std::string way_to_votes(const pieces& p) {
  const auto has = [&](std::string_view part) { return p.why.find(part) != p.why.npos; };
  return fmt::format("{}start those that are down; {} must be there",
                     has("its clock is far from") ? "run chrony or ntpd where the clock is off; " : "",
                     has("; a semaphore of ") ? "as many servers as it takes votes" : "a majority of the servers");
}

struct tls_row {
  std::string_view words;
  const char* why;
  const char* fix;
};

constexpr auto silence = "nobody answered the handshake: the port speaks Redis without TLS, or it hangs";
constexpr auto no_tls = "that port speaks something else than TLS";
constexpr auto another_tls = "the server speaks no TLS that we do: 1.2 or newer";
constexpr auto unknown_authority = "whoever signed the server's certificate is no authority that we trust";
constexpr auto way_to_plain = "redis:// if that port is plain, or the port that speaks TLS";
constexpr auto way_to_protocol = "redis.conf: tls-protocols \"TLSv1.2 TLSv1.3\"";
constexpr auto way_to_authority = "--cacert FILE with that authority; in a URI ?cacert=FILE";
constexpr auto way_to_name =
    "name the host as it does: openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -ext "
    "subjectAltName";

// Which words of the library, or of OpenSSL, mean what; the first that fit count. Those about files stand before all
// others, because a file's name may have any words in it. An alert is what the server says of us.
constexpr std::array tls_table{
    tls_row{"cannot read the system's authorities", "", "apt-get install ca-certificates; or --cacert FILE"},
    tls_row{"cannot read authorities", "", "--cacert FILE, with certificates in PEM"},
    tls_row{"cannot use ", "", "--cert FILE and --key FILE, in PEM and made for each other"},
    tls_row{"got no answer", silence, "redis:// if that port is plain; else look whether the server hangs"},
    tls_row{"during the handshake", "", "redis:// if that port is plain; else the server's log says why it ends them"},
    tls_row{"wrong version number", no_tls, way_to_plain},
    tls_row{"certificate required", "the server wants a certificate of ours", "--cert FILE --key FILE"},
    tls_row{"alert handshake failure", "the server wants a certificate of ours, or knows no cipher of ours",
            "--cert FILE --key FILE; else its log says more"},
    tls_row{"alert protocol version", another_tls, way_to_protocol},
    tls_row{"unsupported protocol", another_tls, way_to_protocol},
    tls_row{"alert certificate expired", "our certificate has expired, by the server's clock",
            "another one: --cert FILE --key FILE"},
    tls_row{"alert unknown ca", "the server does not trust whoever signed our certificate",
            "--cert FILE --key FILE of an authority in its tls-ca-cert-file"},
    tls_row{" alert ", "the server refuses us, most often for our certificate",
            "look at --cert and --key; the server's log says more"},
    tls_row{"certificate has expired", "the server's certificate has expired, or this machine's clock is ahead",
            "a new one there; look at the clocks: date"},
    tls_row{"not yet valid", "the server's certificate begins later, or this machine's clock is behind",
            "look at the clocks: date"},
    tls_row{"hostname mismatch", "the server's certificate is for other names", way_to_name},
    tls_row{"address mismatch", "the server's certificate is for other names", way_to_name},
    tls_row{"issuer certificate", unknown_authority, way_to_authority},
    tls_row{"signed certificate", unknown_authority, way_to_authority},
    tls_row{"first certificate", unknown_authority, way_to_authority},
    tls_row{"certificate verify failed", "", "look at its certificate: openssl s_client -connect HOST:PORT </dev/null"},
    tls_row{"", "", "redis:// if that port is plain; --cacert FILE for an authority of your own"},
};

const tls_row& about_tls(const pieces& p) {
  const std::string_view words = p.words.empty() ? "got no answer" : std::string_view{p.words};
  return *std::find_if(tls_table.begin(), tls_table.end(),
                       [&](const auto& row) { return words.find(row.words) != words.npos; });
}

bool names_in_uri(const fault_context& context, std::string_view key) {
  return context.uri.find(fmt::format("?{}=", key)) != context.uri.npos ||
         context.uri.find(fmt::format("&{}=", key)) != context.uri.npos;
}

sentences for_tls(const pieces& p, const fault_context& context) {
  auto text = fmt::format("no TLS with {}{}{}", p.reached, p.colon_words, p.tried);
  const auto& files = context.files;
  const bool has_key = !files.key.empty() || names_in_uri(context, "key");
  // A PEM file may have both, and who names the certificate alone says that it has.
  if (!has_key && p.words.starts_with("cannot use private key ") &&
      (!files.cert.empty() || names_in_uri(context, "cert")))
    return {std::move(text), "no key was named, so it was looked for beside the certificate, in the same file",
            fmt::format("{}, with the certificate's key in PEM",
                        files.cert.empty() ? "&key=FILE in the URI" : "--key FILE")};
  const auto& row = about_tls(p);
  return {std::move(text), p.why.empty() ? row.why : p.why, row.fix};
}

sentences for_no_connection(const pieces& p, const std::string& elsewhere) {
  auto text = fmt::format("cannot reach {}{}{}", p.reached, p.colon_words, p.tried);
  const bool is_no_directory = is_socket(p) && says(p, ENOTDIR);
  auto [why, fix] = is_no_directory ? about_no_directory(p) : about_connect(p);
  if (!is_no_directory && !is_ours_to_mend(p)) fix = fmt::format("{}, {}", fix, elsewhere);
  return {std::move(text), std::move(why), std::move(fix)};
}

}  // namespace

const char* way_to_another_server(const pieces& p) {
  return p.is_named_by_option ? "--uri redis://HOST:PORT" : "export HOLDFAST_URI=redis://HOST:PORT";
}

pieces::pieces(const error& e, const fault_context& context)
    : server{e.detail().endpoint.empty() ? "the server" : visible(e.detail().endpoint)},
      subject{shown(e.detail().subject)},
      bare_subject{visible_path(unquoted(e.detail().subject))},
      words{in_words_of_options(visible(e.detail().server_text))},
      why{in_words_of_options(has_name_in_why(e) ? visible_word(e.detail().why) : visible(e.detail().why))},
      lock{context.lock.empty() ? "the lock" : fmt::format("'{}'", visible_word(context.lock))},
      lock_argument{cli::lock_argument(lock_words{context.lock, server_of(context), context.plain})},
      server_argument{cli::server_argument(server_of(context))},
      meant_lock_argument{cli::lock_argument(lock_words{context.lock, meant_server_of(context), context.plain})},
      init_argument{cli::server_argument(words_of_init(context))},
      reached{whom_it_asked(e, server, subject)},
      is_named_by_option{!context.uri_option.empty()} {
  const auto& d = e.detail();
  if (!words.empty()) colon_words = fmt::format(": {}", words);
  if (d.attempts > 1)
    tried = fmt::format(" (tried {} times in {})", d.attempts, cli::to_text(d.elapsed));
  else if (d.elapsed.count() > 0)
    tried = fmt::format(" (after {})", cli::to_text(d.elapsed));
  if (d.may_remain.count() > 0) remains = cli::to_text(d.may_remain);
}

std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  return visible(std::string_view{text}.substr(0, most)) + "...";
}

sentences for_connection(errc cause, const pieces& p, const fault_context& context) {
  const auto elsewhere = fmt::format("or point elsewhere: {}", way_to_another_server(p));
  switch (cause) {
    case errc::cannot_resolve:
      return {fmt::format("cannot reach {}{}{}", p.reached, p.colon_words, p.tried), "its name has no address",
              fmt::format("check the spelling and the name server, {}", elsewhere)};
    case errc::cannot_connect: return for_no_connection(p, elsewhere);
    case errc::no_primary:
      if (p.server.find("+cluster://") != p.server.npos)
        return {fmt::format("{} does not say who serves what{}", p.server, p.tried), p.words,
                "name several of its nodes in the URI; look at it: redis-cli --cluster check HOST:PORT"};
      return {fmt::format("{} has no primary that most of its sentinels agree on{}", p.server, p.tried), p.words,
              way_to_sentinels_that_agree(p.words)};
    case errc::no_quorum:
      return {fmt::format("too few servers of {} voted{}", p.server, p.tried), p.why, way_to_votes(p)};
    case errc::server_silent:
      if (is_local(p))
        return {fmt::format("{} accepts connections and answers nothing{}", p.reached, p.tried),
                "it hangs, or is stopped", of_local(p, "status")};
      if (is_socket(p))
        return {fmt::format("{} accepts connections and answers nothing{}", p.reached, p.tried),
                "it hangs, or another program listens on that socket", "redis-cli -s PATH PING"};
      if (p.words == "no connection")
        return {fmt::format("cannot reach {}: {}{}", p.reached, p.words, p.tried),
                "nobody says yes or no there: the machine is down, or something on the way drops what is sent to it",
                fmt::format("check host and port, and the firewalls on the way, {}", elsewhere)};
      return {fmt::format("{} accepts connections and answers nothing{}", p.reached, p.tried),
              "it hangs, or another protocol lives on that port (TLS?)",
              "redis-cli PING there; rediss:// if the port speaks TLS"};
    case errc::connection_lost:
      if (is_local(p))
        return {fmt::format("the connection to {} ended and could not be made again{}{}", p.reached, p.colon_words,
                            p.tried),
                "", fmt::format("run it again, which starts it; or: {}", of_local(p, "start"))};
      return {
          fmt::format("the connection to {} ended and could not be made again{}{}", p.reached, p.colon_words, p.tried),
          "",
          is_plain_tcp(p) ? "look whether the server is up, and why it closes connections; rediss:// if the port "
                            "speaks TLS"
                          : "look whether the server is up, and why it closes connections"};
    case errc::tls_failed: return for_tls(p, context);
    default: return {};
  }
}

}  // namespace holdfast::cli
