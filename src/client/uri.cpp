// SPDX-License-Identifier: Apache-2.0
#include "client/uri.hpp"

#include "client/uri_text.hpp"
#include "script/quorum_record.hpp"

// Compiled here, once, and in a namespace of our own: beside somebody's own Boost.URL a static library of ours would be
// a second definition of each of its functions (docs/decisions/0025-fmt-is-compiled-once.md).
#define urls holdfast_urls
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/rfc/pchars.hpp>
#include <boost/url/src.hpp>
#include <boost/url/url_view.hpp>
#undef urls

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

namespace urls = boost::holdfast_urls;

struct bad_part {
  std::string subject;
  std::string why;
};

// One spelling of a path that parses again: whatever a path in a URI may not have is percent-encoded.
std::string encoded(std::string_view path) { return urls::encode(path, urls::pchars + '/'); }

// What follows the colon of a port may be the rest of a password whose host was forgotten: redis://default:/secret.
bool may_hide_password(const urls::url_view& url) { return url.has_port(); }

int database_of(std::string_view text, bool is_shown) {
  if (text.empty()) return 0;
  const auto n = small_number(text, 1'000'000);
  if (!n) throw bad_part{is_shown ? std::string{text} : "the database", "the database must be a number from 0"};
  return *n;
}

void read_query(const urls::url_view& url, server_uri& out) {
  // A plus is one: that it is a space is a custom of HTML forms.
  for (const auto& q : url.params(urls::encoding_opts{false})) {
    const bool is_unix = std::holds_alternative<net::unix_address>(out.where.where);
    if (q.key == "db" && is_unix) {
      out.database = database_of(q.value, true);
    } else if (q.key == "cacert" && out.where.uses_tls) {
      out.where.tls.cacert = q.value;
    } else if (q.key == "cert" && out.where.uses_tls) {
      out.where.tls.cert = q.value;
    } else if (q.key == "key" && out.where.uses_tls) {
      out.where.tls.key = q.value;
    } else if (q.key == "generation" && !out.quorum.empty()) {
      const auto n = small_number(q.value, static_cast<int>(script::most_generations));
      if (!n || *n == 0) throw bad_part{q.value, "the generation of a quorum is a number from 1"};
      out.generation = static_cast<std::uint32_t>(*n);
    } else {
      const std::string subject = q.has_value || !may_hide_password(url) ? std::string{q.key} : "the query";
      throw bad_part{subject, is_unix ? "a socket URI knows the query key db only"
                              : !out.quorum.empty()
                                  ? "redis+quorum: knows the query key generation; rediss+quorum: also "
                                    "cacert, cert and key"
                              : out.where.uses_tls ? "rediss: knows the query keys cacert, cert and key"
                                                   : "redis: has no query keys; cacert, cert and key go with rediss:"};
    }
  }
}

net::tcp_address read_address(const urls::url_view& url, std::string_view default_port) {
  std::string host{url.host()};
  if (host.empty()) throw bad_part{std::string{url.scheme()} + "://", "a host must follow"};
  const bool is_bracketed = host.size() > 2 && host.front() == '[';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  // RFC 3986 lets a colon through in odd places; which host would be meant is anybody's guess.
  if (!is_bracketed && host.find(':') != std::string::npos) {
    throw bad_part{"the host", "an IPv6 address stands in brackets, and a port is a number after one colon"};
  }
  const auto is_of_hosts = [&](char c) {
    return is_bracketed ? is_one_of(c, "0123456789abcdefABCDEF:.") : is_name_byte(c);
  };
  if (!std::all_of(host.begin(), host.end(), is_of_hosts)) {
    throw bad_part{"the host", "it has a byte that no host name has; write other alphabets in punycode"};
  }
  std::string port{url.port()};
  if (port.empty()) port = default_port;
  if (const auto n = small_number(port, 65'535); !n || *n == 0) throw bad_part{port, "the port must be 1 to 65535"};
  return {std::move(host), std::move(port)};
}

void read_tcp(const urls::url_view& url, server_uri& out) {
  auto where = in_one_spelling(read_address(url, "6379"));
  std::string path{url.path()};
  if (path == "/") path.clear();
  out.database = database_of(path.empty() ? path : path.substr(1), !may_hide_password(url));
  out.display = std::string{url.scheme()} + "://" + text_of(where);
  if (out.database != 0) out.display += "/" + std::to_string(out.database);
  out.where.where = std::move(where);
}

// Of URIs that name several servers. A URI has one host (RFC 3986), so `url` has the first of them, and the others come
// apart.
std::vector<net::tcp_address> read_addresses(const urls::url_view& url, const std::vector<std::string>& others,
                                             const char* port, const char* what, const char* why_not_twice) {
  std::vector<net::tcp_address> found{in_one_spelling(read_address(url, port))};
  for (const auto& one : others) {
    const auto other = urls::parse_uri(one);
    if (!other || !other->path().empty() || other->has_query() || other->has_userinfo()) {
      throw bad_part{what, "write HOST or HOST:PORT for each, with a comma between them"};
    }
    found.push_back(in_one_spelling(read_address(*other, port)));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (text_of(found[i]) == text_of(found[j])) throw bad_part{text_of(found[i]), why_not_twice};
    }
  }
  return found;
}

std::string text_of_all(const std::vector<net::tcp_address>& which) {
  std::string all;
  for (const auto& one : which) all += (all.empty() ? "" : ",") + text_of(one);
  return all;
}

// redis+cluster://[user:password@]A[:port],B,C[/]
void read_cluster(const urls::url_view& url, const std::vector<std::string>& others, server_uri& out) {
  net::cluster_seeds set;
  set.uses_tls = out.where.uses_tls;
  set.nodes = read_addresses(url, others, "6379", "the nodes", "it is named twice");
  std::string path{url.path()};
  if (!path.empty()) path.erase(0, 1);
  if (database_of(path, !may_hide_password(url)) != 0)
    throw bad_part{path, "a cluster has database 0 only; leave it out"};
  out.display = std::string{url.scheme()} + "://" + text_of_all(set.nodes);
  out.cluster = std::move(set);
}

// redis+sentinel://[user:password@]S1[:port],S2,S3/NAME[/db].
void read_sentinels(const urls::url_view& url, const std::vector<std::string>& others, server_uri& out) {
  net::sentinel_set set;
  set.uses_tls = out.where.uses_tls;
  set.sentinels =
      read_addresses(url, others, "26379", "the sentinels", "it is named twice, and has one voice in the majority");
  const std::string all = text_of_all(set.sentinels);
  std::string path{url.path()};
  if (!path.empty()) path.erase(0, 1);
  const auto slash = std::min(path.find('/'), path.size());
  set.primary = path.substr(0, slash);
  if (set.primary.empty() || !std::all_of(set.primary.begin(), set.primary.end(), is_name_byte)) {
    throw bad_part{set.primary.empty() ? all : set.primary,
                   "behind the sentinels must stand a slash and the primary's name, of letters, digits and . - _"};
  }
  out.database = database_of(path.substr(std::min(slash + 1, path.size())), true);
  out.display = std::string{url.scheme()} + "://" + all + "/" + set.primary;
  if (out.database != 0) out.display += "/" + std::to_string(out.database);
  out.sentinels = std::move(set);
}

// redis+quorum://[user:password@]A[:port],B,C[/db][?generation=N]. Sorted: the URI is the quorum's name, and the first
// server that answers keeps the line of those who wait, so that all clients must mean the same by "first".
void read_quorum(const urls::url_view& url, const std::vector<std::string>& others, server_uri& out) {
  constexpr auto port = "6379";
  std::vector<net::tcp_address> all{in_one_spelling(read_address(url, port))};
  for (const auto& one : others) {
    const auto other = urls::parse_uri(one);
    if (!other || !other->path().empty() || other->has_query() || other->has_userinfo()) {
      throw bad_part{"the servers", "write HOST or HOST:PORT for each, with a comma between them"};
    }
    all.push_back(in_one_spelling(read_address(*other, port)));
  }
  std::sort(all.begin(), all.end(),
            [](const net::tcp_address& a, const net::tcp_address& b) { return text_of(a) < text_of(b); });
  const auto twin =
      std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) { return text_of(a) == text_of(b); });
  if (twin != all.end()) throw bad_part{text_of(*twin), "it is named twice, and would vote twice"};
  if (all.size() % 2 == 0) {
    throw bad_part{std::to_string(all.size()) + " servers",
                   "their votes can come out even, and then neither half is a majority; take one more or one less"};
  }
  if (all.size() > 9) {
    throw bad_part{std::to_string(all.size()) + " servers", "a quorum has 1, 3, 5, 7 or 9 servers"};
  }
  std::string path{url.path()};
  if (!path.empty()) path.erase(0, 1);
  out.database = database_of(path, !may_hide_password(url));
  out.display = std::string{url.scheme()} + "://";
  for (const auto& one : all) {
    out.display += (out.quorum.empty() ? "" : ",") + text_of(one);
    out.quorum.push_back({one, out.where.uses_tls, {}});
  }
  if (out.database != 0) out.display += "/" + std::to_string(out.database);
  out.where.where = all.front();
}

// sockaddr_un, less the zero byte.
constexpr std::size_t most_of_socket_path = sizeof sockaddr_un{}.sun_path - 1;

void read_unix(const urls::url_view& url, server_uri& out) {
  std::string path{url.path()};
  if (!url.host().empty()) throw bad_part{std::string{url.host()}, "a socket path begins with a third slash"};
  if (path.size() < 2 || path.front() != '/')
    throw bad_part{"redis+unix:" + path, "a socket path from the root must follow"};
  if (has_control_bytes(path)) throw bad_part{"the socket path", "it has a control byte"};
  if (path.size() > most_of_socket_path)
    throw bad_part{path,
                   fmt::format("a socket path of {} bytes is longer than the {} that the system allows; a symbolic "
                               "link to its directory makes it shorter",
                               path.size(), most_of_socket_path)};
  out.where.where = net::unix_address{path};
  out.display = "redis+unix://" + encoded(path);
}

server_uri read(const urls::url_view& url, const std::vector<std::string>& other_hosts) {
  server_uri out;
  out.who = {std::string{url.user()}, std::string{url.password()}};
  const std::string scheme{url.scheme()};
  out.where.uses_tls = scheme.starts_with("rediss");
  // Boost.URL 1.81 takes what follows a port that is no number for a path. Said first of all and never shown: it is
  // most often a password whose host was forgotten, redis://default:secret.
  if (const auto path = url.encoded_path(); !path.empty() && path.front() != '/')
    throw bad_part{"the port", "it must be a number from 1 to 65535; behind a password stand an @ and the host"};
  if (url.has_fragment()) throw bad_part{"the fragment", "a server URI has none; percent-encode a # of the password"};
  if (scheme == "redis" || scheme == "rediss") {
    if (!url.has_authority()) throw bad_part{scheme + ":", "two slashes and a host must follow"};
    read_tcp(url, out);
    read_query(url, out);
  } else if (scheme == "redis+sentinel" || scheme == "rediss+sentinel") {
    if (!url.has_authority()) throw bad_part{scheme + ":", "two slashes and the sentinels must follow"};
    read_sentinels(url, other_hosts, out);
    read_query(url, out);
  } else if (scheme == "redis+quorum" || scheme == "rediss+quorum") {
    if (!url.has_authority()) throw bad_part{scheme + ":", "two slashes and the servers must follow"};
    read_quorum(url, other_hosts, out);
    read_query(url, out);
    if (out.generation != 1) out.display += "?generation=" + std::to_string(out.generation);
  } else if (scheme == "redis+cluster" || scheme == "rediss+cluster") {
    if (!url.has_authority()) throw bad_part{scheme + ":", "two slashes and some of the nodes must follow"};
    read_cluster(url, other_hosts, out);
    read_query(url, out);
  } else if (scheme == "redis+unix") {
    read_unix(url, out);
    read_query(url, out);
    if (out.database != 0) out.display += "?db=" + std::to_string(out.database);
  } else if (scheme == "local") {
    if (url.has_authority() || url.has_query())
      throw bad_part{"local:", "only a directory may follow: local:/directory"};
    out.is_local = true;
    out.local_directory = std::string{url.path()};
    if (!out.local_directory.empty() && out.local_directory.front() != '/') {
      throw bad_part{out.local_directory, "the directory must begin with a slash"};
    }
    if (has_control_bytes(out.local_directory)) throw bad_part{"the directory", "it has a control byte"};
    out.display = local_display(out.local_directory);
  } else {
    throw bad_part{scheme,
                   "known are redis://, redis+sentinel://, redis+cluster:// and redis+quorum://, each also as rediss, "
                   "redis+unix:// and local:"};
  }
  return out;
}

}  // namespace

std::string local_display(std::string_view directory) { return "local:" + encoded(directory); }

std::optional<server_uri> parse_uri(std::string_view text, error_detail& why) {
  if (has_zone(text)) {
    why.subject = "the address in brackets";
    why.why = "an IPv6 address with a zone (%eth0) is of one machine alone; write one without, or a name";
    return std::nullopt;
  }
  std::string first{text};
  const auto others = cut_other_hosts(first);
  const bool is_fit = is_fit_to_parse(first) && std::all_of(others.begin(), others.end(), is_fit_to_parse);
  const auto url = urls::parse_uri(is_fit ? std::string_view{first} : std::string_view{});
  if (!url) {
    // What cannot be parsed may hide a password anywhere, so nothing of it is repeated.
    why.subject = "a URI of " + std::to_string(text.size()) + " bytes";
    why.why = "it does not parse; write redis://HOST:PORT/DB and percent-encode special characters in the password";
    return std::nullopt;
  }
  try {
    return read(*url, others);
  } catch (const bad_part& bad) {
    // An @ that ends no user part: what stands before it may be a password with a / ? or # that was not encoded.
    const bool may_hide_password = std::count(text.begin(), text.end(), '@') > (url->has_userinfo() ? 1 : 0);
    why.subject = may_hide_password ? "a URI of " + std::to_string(text.size()) + " bytes" : bad.subject;
    why.why =
        may_hide_password ? "an @ stands in an odd place; percent-encode special characters in the password" : bad.why;
    return std::nullopt;
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
