// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include "uri.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace holdfast::cli {
namespace {

constexpr std::array ours{"HOLDFAST_HELD", "HOLDFAST_NAME",   "HOLDFAST_TOKEN", "HOLDFAST_OWNER",
                          "HOLDFAST_MODE", "HOLDFAST_TTL_MS", "HOLDFAST_HOLDS"};

// Percent-escapes everything but plain letters, so that fields can be joined by `,` and entries by a space.
std::string escaped(std::string_view field) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+";
  std::string out;
  for (const char c : field) {
    if (plain.find(c) != plain.npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

bool is(std::string_view assignment, std::string_view name) {
  return assignment.size() > name.size() && assignment.starts_with(name) && assignment[name.size()] == '=';
}

bool is_ours(std::string_view assignment) {
  for (const auto* name : ours)
    if (is(assignment, name)) return true;
  return false;
}

template <class See>
void for_each_above(See see) {
  auto rest = variable("HOLDFAST_HOLDS");
  while (!rest.empty()) {
    const auto space = rest.find(' ');
    see(rest.substr(0, space));
    rest = space == rest.npos ? std::string_view{} : rest.substr(space + 1);
  }
}

std::string name_in_file(uid_t user) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file{std::fopen("/etc/passwd", "re"), &std::fclose};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    const bool is_user = *found->pw_name != '+' && *found->pw_name != '-';  // And not the whole of NIS.
    if (is_user && found->pw_uid == user) return found->pw_name;
  }
  return {};
}

}  // namespace

std::string user_name() {
  for (const auto* name : {"LOGNAME", "USER"}) {
    if (const auto user = variable(name); !user.empty()) return std::string{user};
  }
  const auto name = name_in_file(::getuid());
  return name.empty() ? fmt::format("uid{}", ::getuid()) : name;
}

std::string hold_entry(std::string_view endpoint, std::string_view prefix, naming how, std::string_view name) {
  return fmt::format("{},{},{},{}", escaped(endpoint), escaped(prefix), how == naming::plain ? "plain" : "holdfast",
                     escaped(name));
}

std::size_t locks_above() {
  std::size_t count = 0;
  for_each_above([&](std::string_view) { ++count; });
  return count;
}

std::vector<std::optional<fencing_token>> tokens_above(std::string_view entry) {
  std::vector<std::optional<fencing_token>> tokens;
  for_each_above([&](std::string_view listed) {
    if (listed == entry)
      tokens.emplace_back(std::nullopt);
    else if (listed.starts_with(entry) && listed[entry.size()] == ',')
      tokens.push_back(fencing_token::parse(listed.substr(entry.size() + 1)));
  });
  return tokens;
}

std::vector<std::string> environment_under(const held_lock& lock, bool keep_password) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view assignment{*entry};
    if (is_ours(assignment)) continue;
    const bool is_password = is(assignment, "REDISCLI_AUTH") || is(assignment, "HOLDFAST_SENTINEL_PASSWORD");
    if (!keep_password && is_password) continue;
    if (!keep_password && is(assignment, "HOLDFAST_URI"))
      out.push_back(without_credentials(assignment));
    else
      out.emplace_back(assignment);
  }
  const auto above = variable("HOLDFAST_HOLDS");
  out.emplace_back("HOLDFAST_HELD=1");
  out.push_back(fmt::format("HOLDFAST_NAME={}", lock.name));
  out.push_back(fmt::format("HOLDFAST_TOKEN={}", lock.token.to_string()));
  out.push_back(fmt::format("HOLDFAST_OWNER={}", lock.owner));
  out.push_back(fmt::format("HOLDFAST_MODE={}", lock.mode));
  out.push_back(fmt::format("HOLDFAST_TTL_MS={}", lock.ttl.count()));
  out.push_back(
      fmt::format("HOLDFAST_HOLDS={}{}{},{}", above, above.empty() ? "" : " ", lock.entry, lock.token.to_string()));
  return out;
}

std::string_view variable(const char* name) { return variable_if_set(name).value_or(std::string_view{}); }

std::optional<std::string_view> variable_if_set(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional{std::string_view{value}} : std::nullopt;
}

}  // namespace holdfast::cli
