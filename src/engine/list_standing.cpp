// SPDX-License-Identifier: Apache-2.0
// What the records of servers say before one list is replaced by the other (P26), and why it may not be.
#include "engine/list_replacement.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace holdfast::engine {

auto list_replacement::of(const member& at) const -> standing {
  if (at.is_away) return standing::away;
  if (at.kept == text_of(open_)) return standing::opened;
  if (at.kept == text_of(closed_)) return standing::closed;
  if (at.kept.empty()) return standing::before;
  const auto found = script::parse_quorum_record(at.kept);
  if (!found || found->generation > open_.generation) return standing::other;
  if (found->generation == open_.generation) return at.is_old && !found->is_open ? standing::rival : standing::other;
  if (at.is_old) {
    // Or somebody closed it for a list of the same generation, and the old list came first.
    const bool is_of_old =
        found->generation < what_.from.generation || !found->is_open || found->servers == what_.from.servers;
    return is_of_old ? standing::before : standing::other;
  }
  // The old list, under another address of a server of it.
  if (at.kept == text_of(what_.from)) return standing::before;
  // A list that nobody has closed may be in use.
  return found->is_open && !is_closed_by_now(*found) ? standing::other : standing::before;
}

// Who was away when it was replaced does not know. Most of its servers do, and we see them.
bool list_replacement::is_closed_by_now(const script::quorum_record& list) const {
  const auto size = 1 + std::count(list.servers.begin(), list.servers.end(), ',');
  const auto are_later = std::count_if(members_.begin(), members_.end(), [&](const member& one) {
    const auto kept = script::parse_quorum_record(one.kept);
    const bool is_its = ("," + list.servers + ",").find("," + one.name + ",") != std::string::npos;
    return is_its && !one.is_away && kept && kept->generation > list.generation;
  });
  return 2 * are_later > size;
}

std::size_t list_replacement::count(bool member::*list, std::initializer_list<standing> which) const {
  return names(list, which).size();
}

std::vector<std::string> list_replacement::names(bool member::*list, std::initializer_list<standing> which) const {
  std::vector<std::string> out;
  for (const auto& one : members_) {
    if (one.*list && std::find(which.begin(), which.end(), of(one)) != which.end()) out.push_back(one.name);
  }
  return out;
}

// Who was left out by a replacement that is through stays closed. Of several that belong elsewhere, one that is open
// says more.
auto list_replacement::most_telling(const member& first) const -> const member& {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& one) {
    const auto kept = script::parse_quorum_record(one.kept);
    return of(one) == standing::other && kept && kept->is_open;
  });
  return found == members_.end() ? first : *found;
}

auto list_replacement::fail_for_other(const member& first) const -> failure {
  const auto& at = most_telling(first);
  const auto found = script::parse_quorum_record(at.kept);
  error_detail detail;
  detail.endpoint = what_.from_name;
  detail.server_text = at.name + ": it belongs to " + at.kept;
  if (found && found->generation == open_.generation && !found->is_open) {
    detail.why = fmt::format("another replacement is under way: finish that replacement, with {} as the new list",
                             found->servers);
  } else if (found && found->generation >= open_.generation) {
    detail.why = fmt::format("the old list is {}?generation={} by now", found->servers, found->generation);
    if (found->generation == open_.generation)
      detail.why +=
          fmt::format("; if that replacement has not ended, finish it, with {} as the new list", found->servers);
  } else {
    detail.why = fmt::format("name the list to which it belongs; if that is not used any more, redis-cli DEL {} there",
                             what_.record_key);
  }
  return failure{errc::other_quorum, std::move(detail)};
}

// Two addresses of one server are no two votes, and who wins refuses such a list: with it nobody could have a lock. Of
// the old list it does not matter; somebody may be on his way out of it.
auto list_replacement::not_apart() const -> std::optional<failure> {
  for (auto one = members_.begin(); one != members_.end(); ++one) {
    if (!one->is_new || one->is_away || one->run_id.empty()) continue;
    const auto twin = std::find_if(std::next(one), members_.end(), [&](const auto& other) {
      return other.is_new && !other.is_away && other.run_id == one->run_id;
    });
    if (twin == members_.end()) continue;
    error_detail detail;
    detail.subject = one->name + " and " + twin->name;
    detail.why = "they are one server, which would vote twice";
    return failure{errc::invalid_uri, std::move(detail)};
  }
  return std::nullopt;
}

auto list_replacement::not_known() const -> std::optional<failure> {
  for (const auto& one : members_) {
    if (of(one) == standing::other) return fail_for_other(one);
  }
  if (count(&member::is_old, {standing::rival}) != 0 && is_outdone()) return fail_for_rival();
  return std::nullopt;
}

// Who has changed nothing leaves it to who came first, and so does who cannot have a majority any more.
bool list_replacement::is_outdone() const {
  const auto rivals = count(&member::is_old, {standing::rival});
  return closed_for_us() == 0 || !is_majority(&member::is_old, size_of(&member::is_old) - rivals);
}

auto list_replacement::fail_for_rival() const -> failure {
  std::map<std::string, std::size_t> closed;  // For whom.
  for (const auto& one : members_) {
    if (one.is_old && of(one) == standing::rival) ++closed[one.kept];
  }
  const auto most =
      std::max_element(closed.begin(), closed.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto ours = closed_for_us();
  const auto open_to_all = count(&member::is_old, {standing::before, standing::away});
  const auto theirs = script::parse_quorum_record(most->first)->servers;
  error_detail detail;
  detail.endpoint = what_.from_name;
  detail.server_text =
      fmt::format("{} of {} servers are closed for {}", most->second, size_of(&member::is_old), theirs);
  if (!is_majority(&member::is_old, std::max(ours, most->second) + open_to_all)) {
    detail.why = fmt::format(
        "several replacements are under way, and none of them can close a majority any more: stop them, redis-cli DEL "
        "{} where it names another new list than the one that you choose, and replace the list by that",
        what_.record_key);
  } else if (most->second > ours) {
    detail.why =
        fmt::format("another replacement is under way: finish that replacement, with {} as the new list", theirs);
  } else {
    detail.why = fmt::format(
        "{} are closed for yours, and another replacement is under way: start the others and call again; if they are "
        "gone for good, stop the other one and redis-cli DEL {} where it names its list",
        ours, what_.record_key);
  }
  return failure{errc::other_quorum, std::move(detail)};
}

auto list_replacement::no_majority(bool member::*list, std::size_t found, const std::string& missed) const
    -> std::optional<failure> {
  const auto size = size_of(list);
  if (is_majority(list, found)) return std::nullopt;
  error_detail detail;
  detail.endpoint = list == &member::is_old ? what_.from_name : what_.to_name;
  detail.why = fmt::format("{} of {} servers {}", found, size, missed);
  for (const auto& one : members_) {
    if (one.*list && one.is_away) detail.why += fmt::format("; {}: {}", one.name, one.trouble);
  }
  return failure{errc::no_quorum, std::move(detail)};
}

// A list of a later generation is in use only when it was opened. If that was begun and not finished, the list before
// it grants still, and to close this one closes nothing.
auto list_replacement::not_in_use() const -> std::optional<failure> {
  if (what_.from.generation == 1 || what_.reopen) return std::nullopt;
  const auto has_been_open = [&](const member& one) {
    return of(one) == standing::closed || of(one) == standing::opened ||
           (!one.is_away && one.kept == text_of(what_.from));
  };
  std::size_t found = 0;
  const member* first = nullptr;  // Of those who know nothing of it.
  for (const auto& one : members_) {
    if (!one.is_old) continue;
    if (has_been_open(one)) {
      ++found;
    } else if (first == nullptr && !one.is_away) {
      first = &one;
    }
  }
  if (is_majority(&member::is_old, found)) return std::nullopt;
  error_detail detail;
  detail.endpoint = what_.from_name;
  if (first != nullptr)
    detail.server_text =
        fmt::format("{}: it belongs to {}", first->name, first->kept.empty() ? "no list" : first->kept);
  detail.why = fmt::format(
      "generation {} of {} is not open: finish the replacement that opens it, or reopen it (--reopen) if its servers "
      "have lost their data",
      what_.from.generation, what_.from_name.substr(0, what_.from_name.find('?')));
  return failure{errc::other_quorum, std::move(detail)};
}

}  // namespace holdfast::engine
