// SPDX-License-Identifier: Apache-2.0
#include "local/lab_record.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <utility>

namespace holdfast::local {
namespace {

constexpr std::string_view first_line = "holdfast-lab 1";

constexpr std::array kinds{std::pair{lab_kind::single, std::string_view{"single"}},
                           std::pair{lab_kind::replicas, std::string_view{"replicas"}},
                           std::pair{lab_kind::sentinel, std::string_view{"sentinel"}},
                           std::pair{lab_kind::cluster, std::string_view{"cluster"}},
                           std::pair{lab_kind::quorum, std::string_view{"quorum"}}};

constexpr std::array roles{std::pair{lab_role::primary, std::string_view{"primary"}},
                           std::pair{lab_role::replica, std::string_view{"replica"}},
                           std::pair{lab_role::sentinel, std::string_view{"sentinel"}}};

template <class Table>
auto named(const Table& table, std::string_view word) {
  std::optional<decltype(table.front().first)> found;
  for (const auto& [value, name] : table)
    if (name == word) found = value;
  return found;
}

template <class Table, class Value>
std::string_view name_in(const Table& table, Value wanted) {
  for (const auto& [value, name] : table)
    if (value == wanted) return name;
  return {};
}

[[noreturn]] void refuse_count(lab_kind kind, int count, std::string_view reason) {
  error_detail detail;
  detail.subject = fmt::format("count {}", count);
  detail.why = fmt::format("lab {} {}: {}", word_of(kind), count, reason);
  throw error(errc::invalid_option, std::move(detail));
}

std::size_t checked(lab_kind kind, int count) {
  switch (kind) {
    case lab_kind::replicas:
      if (count < 0 || count > 8) refuse_count(kind, count, "it has 1 to 8 replicas");
      return static_cast<std::size_t>(count == 0 ? 2 : count);
    case lab_kind::quorum:
      if (count < 0 || count > 9) refuse_count(kind, count, "it has 1 to 9 servers");
      if (count != 0 && count % 2 == 0)
        refuse_count(kind, count,
                     fmt::format("an even number of servers can be split into halves of which neither is a majority, "
                                 "and bears no more failures than {}",
                                 count - 1));
      return static_cast<std::size_t>(count == 0 ? 5 : count);
    case lab_kind::single:
    case lab_kind::sentinel:
    case lab_kind::cluster: break;
  }
  if (count != 0) refuse_count(kind, count, "its number of servers is fixed");
  return 0;
}

// How many of each role, in the order of lab_role.
std::array<std::size_t, 3> crew_of(lab_kind kind, int count) {
  const auto asked = checked(kind, count);
  switch (kind) {
    case lab_kind::single: return {1, 0, 0};
    case lab_kind::replicas: return {1, asked, 0};
    case lab_kind::sentinel: return {1, 2, 3};
    case lab_kind::cluster: return {3, 3, 0};
    case lab_kind::quorum: return {asked, 0, 0};
  }
  return {};
}

template <class Number>
bool read_number(std::string_view text, Number smallest, Number largest, Number& into) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), into);
  return ec == std::errc{} && end == text.data() + text.size() && into >= smallest && into <= largest;
}

// "node PORT ROLE PID STARTED"
std::optional<lab_member> parse_member(std::istringstream& words) {
  std::string port, role, pid, started, more;
  words >> port >> role >> pid >> started;
  lab_member member;
  const auto known = named(roles, role);
  if (!known || !read_number(port, 1, 65'535, member.port) || !read_number(pid, 0, 1 << 30, member.pid) ||
      !read_number<std::uint64_t>(started, 0, UINT64_MAX, member.started) || member.pid == 1 || words >> more)
    return std::nullopt;
  member.role = *known;
  return member;
}

bool parse_line(const std::string& line, lab_record& into) {
  std::istringstream words{line};
  std::string key;
  words >> key;
  if (key == "node") {
    const auto member = parse_member(words);
    if (member) into.members.push_back(*member);
    return member.has_value();
  }
  std::string value, more;
  if (!(words >> value) || words >> more) return false;
  if (key == "kind") {
    const auto kind = named(kinds, value);
    into.kind = kind.value_or(lab_kind::single);
    return kind.has_value();
  }
  if (key == "boot") {
    into.boot = value;
    return true;
  }
  if (value != "yes" && value != "no") return false;
  if (key == "persistent") into.persistent = value == "yes";
  if (key == "made-directory") into.made_directory = value == "yes";
  return key == "persistent" || key == "made-directory";
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

std::string_view word_of(lab_role role) { return name_in(roles, role); }
std::string_view word_of(lab_kind kind) { return name_in(kinds, kind); }

std::string lab_member::address() const { return fmt::format("127.0.0.1:{}", port); }
std::string lab_member::directory_name() const { return fmt::format("node-{}", port); }

std::size_t size_of(lab_kind kind, int count) {
  const auto crew = crew_of(kind, count);
  return crew[0] + crew[1] + crew[2];
}

std::vector<lab_member> members_of(lab_kind kind, int count, const std::vector<int>& ports) {
  std::vector<lab_member> members;
  const auto crew = crew_of(kind, count);
  for (std::size_t role = 0; role < crew.size(); ++role)
    for (std::size_t i = 0; i < crew[role]; ++i)
      members.push_back({.role = roles[role].first, .port = ports.at(members.size())});
  return members;
}

std::string uri_of(const lab_record& lab) {
  if (lab.kind == lab_kind::single || lab.kind == lab_kind::replicas)
    return fmt::format("redis://{}", lab.primary().address());
  const auto named_by = lab.kind == lab_kind::sentinel ? lab_role::sentinel : lab_role::primary;
  std::string addresses;
  for (const auto& member : lab.members) {
    // Of a cluster any node will do, and a client should know more than the three that may be gone.
    if (lab.kind != lab_kind::cluster && member.role != named_by) continue;
    addresses += (addresses.empty() ? "" : ",") + member.address();
  }
  return fmt::format("redis+{}://{}{}{}", word_of(lab.kind), addresses, lab.kind == lab_kind::sentinel ? "/" : "",
                     lab.kind == lab_kind::sentinel ? primary_name : "");
}

std::string to_text(const lab_record& lab) {
  auto text =
      fmt::format("{}\nkind {}\nboot {}\npersistent {}\nmade-directory {}\n", first_line, word_of(lab.kind),
                  lab.boot.empty() ? "unknown" : lab.boot, yes_or_no(lab.persistent), yes_or_no(lab.made_directory));
  for (const auto& member : lab.members)
    text += fmt::format("node {} {} {} {}\n", member.port, word_of(member.role), member.pid, member.started);
  return text;
}

std::optional<lab_record> parse_lab_record(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;  // It was cut off.
  std::istringstream lines{std::string{text}};
  std::string line;
  if (!std::getline(lines, line) || line != first_line) return std::nullopt;
  lab_record lab;
  while (std::getline(lines, line))
    if (!parse_line(line, lab)) return std::nullopt;
  if (lab.members.empty() || lab.boot.empty()) return std::nullopt;
  return lab;
}

}  // namespace holdfast::local
