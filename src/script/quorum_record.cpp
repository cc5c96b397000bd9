// SPDX-License-Identifier: Apache-2.0
#include "script/quorum_record.hpp"

#include "script/field.hpp"

#include <array>

namespace holdfast::script {

std::string text_of(const quorum_record& record) {
  return "v1|" + std::to_string(record.generation) + (record.is_open ? "|open|" : "|closed|") + record.servers;
}

std::optional<quorum_record> parse_quorum_record(std::string_view text) {
  std::array<std::string_view, 3> fields;
  for (auto& field : fields) {
    const auto bar = text.find('|');
    if (bar == std::string_view::npos) return std::nullopt;
    field = text.substr(0, bar);
    text.remove_prefix(bar + 1);
  }
  const auto generation = parse_digits(fields[1], 9);
  const bool is_open = fields[2] == "open";
  if (fields[0] != "v1" || !generation || (!is_open && fields[2] != "closed") || text.empty()) return std::nullopt;
  return quorum_record{static_cast<std::uint32_t>(*generation), is_open, std::string{text}};
}

bool is_not_open_yet(std::string_view stored, const quorum_record& wanted) {
  if (stored.empty()) return wanted.generation > 1;
  const auto found = parse_quorum_record(stored);
  if (!found || found->generation > wanted.generation) return false;
  if (found->generation < wanted.generation) return true;
  return !found->is_open;
}

bool may_open(std::string_view stored, const quorum_record& wanted) {
  const auto found = parse_quorum_record(stored);
  return is_not_open_yet(stored, wanted) && (!found || !found->is_open);
}

std::string why_it_does_not_count(std::string_view stored, const quorum_record& ours) {
  if (is_not_open_yet(stored, ours)) {
    return "generation " + std::to_string(ours.generation) + " of the quorum is not open here yet";
  }
  const auto theirs = parse_quorum_record(stored);
  if (!theirs || theirs->generation <= ours.generation) return "it belongs to " + std::string{stored};
  // No URI: scheme and database are the caller's.
  return "its list of servers was replaced by " + theirs->servers + "?generation=" + std::to_string(theirs->generation);
}

}  // namespace holdfast::script
