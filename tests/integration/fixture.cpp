// SPDX-License-Identifier: Apache-2.0
#include "integration/fixture.hpp"

#include "support/tls_material.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace holdfast {
inline namespace v0 {

void PrintTo(const errc& code, std::ostream* out) { *out << to_string(code); }

void PrintTo(const release_outcome& outcome, std::ostream* out) {
  switch (outcome) {
    case release_outcome::released: *out << "released"; break;
    case release_outcome::already_lost: *out << "already_lost"; break;
    case release_outcome::unknown: *out << "unknown"; break;
  }
}

}  // namespace v0
}  // namespace holdfast

namespace holdfast::test {
namespace {

constexpr auto user = "app-lock";
constexpr auto password = "a word of the test";

bool login_is(const char* which) {
  const char* named = std::getenv("HOLDFAST_TEST_LOGIN");
  return named != nullptr && std::string_view{named} == which;
}

// The words of the published rule, from `reset` on: "ACL SETUSER app-lock reset on >SECRET ~hf:* ... +get".
std::vector<std::string> published_rule() {
  std::ifstream page{HOLDFAST_ACL_PAGE};
  for (std::string line; std::getline(page, line);) {
    const auto begin = line.find("ACL SETUSER");
    if (begin == std::string::npos) continue;
    std::istringstream rest{line.substr(begin)};
    std::vector<std::string> words;
    for (std::string word; rest >> word;) words.push_back(word.starts_with('>') ? ">" + std::string{password} : word);
    words.at(2) = user;
    return words;
  }
  throw std::runtime_error("no ACL SETUSER line in " HOLDFAST_ACL_PAGE);
}

redis_options with_login(redis_options options) {
  if (login_is("tls")) options.tls_directory = tls_material(certificate::good);
  return options;
}

}  // namespace

on_redis::on_redis(redis_options options) : server_{with_login(std::move(options))} {
  if (!login_is("acl")) return;
  const auto made = server_.ask(published_rule());
  if (made.is_error()) throw std::runtime_error("the server does not take docs/acl.md: " + made.text);
}

std::string on_redis::uri(int database) const {
  if (login_is("tls")) {
    return "rediss://127.0.0.1:" + std::to_string(server_.tls_port()) + "/" + std::to_string(database) +
           "?cacert=" + tls_material(certificate::good) + "/ca.pem";
  }
  return server_.unix_uri(database);
}

client_options on_redis::login(client_options over) const {
  if (login_is("acl")) {
    over.user = user;
    over.password = password;
  }
  return over;
}

client_options on_redis::options() const { return login({}); }

client on_redis::make_client(std::chrono::milliseconds timeout) const { return make_client_at(uri(), timeout); }

client on_redis::make_client_at(const std::string& where, std::chrono::milliseconds timeout) const {
  client_options over;
  over.timeout = timeout;
  return client{where, login(std::move(over))};
}

void on_redis::allow_also(const std::vector<std::string>& words) {
  if (!login_is("acl")) return;
  std::vector<std::string> command{"ACL", "SETUSER", user};
  command.insert(command.end(), words.begin(), words.end());
  if (const auto made = server_.ask(command); made.is_error()) throw std::runtime_error(made.text);
}

std::vector<std::string> on_redis::worker_environment() const {
  const auto who = options();
  return {"HOLDFAST_TEST_USER=" + who.user, "HOLDFAST_TEST_PASSWORD=" + who.password};
}

}  // namespace holdfast::test
