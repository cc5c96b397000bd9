// SPDX-License-Identifier: Apache-2.0
// What the servers of both lists say before one is replaced by the other (P26), and what follows from it. Nothing is
// written here.
#include "client/quorum_replacement.hpp"

#include "net/quiet_thread.hpp"
#include "resp/info.hpp"
#include "resp/writer.hpp"
#include "script/field.hpp"
#include "script/keys.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <thread>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using std::chrono::milliseconds;

std::string replacement::read(member& at, const std::string& key) const {
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 2>{"GET", key});
  const auto reply = at.state->ask_all(at.state->servers().front(), std::vector{std::move(bytes)}).front();
  at.state->throw_if_error(reply, "key '" + key + "'");
  const auto* text = reply.as_bulk();
  return text ? *text : std::string{};
}

// Empty: an ACL hides it.
std::string replacement::run_id_of(member& at) const {
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 2>{"INFO", "server"});
  const auto reply = at.state->ask_all(at.state->servers().front(), std::vector{std::move(bytes)}).front();
  const auto* text = reply.as_bulk();
  return text ? resp::info_field(*text, "run_id") : std::string{};
}

void replacement::look(member& at) const {
  try {
    at.run_id = run_id_of(at);
    at.kept = read(at, script::quorum_key(prefix_));
    const auto epoch = read(at, script::epoch_key(prefix_, {}));
    const auto hold =
        script::parse_digits(std::string_view{epoch}.substr(std::min(epoch.rfind('|') + 1, epoch.size())), 12);
    at.hold = milliseconds{static_cast<std::int64_t>(hold.value_or(0))};
    at.is_away = false;
  } catch (const error& e) {
    leave_out(at, e);
  }
}

void replacement::leave_out(member& at, const error& e) const {
  at.is_away = true;
  at.trouble = e.detail().server_text.empty() ? e.code().message() : e.detail().server_text;
}

void replacement::look_at_all() {
  struct joined {
    std::vector<std::thread> each{};
    ~joined() {
      for (auto& one : each) one.join();
    }
  } looks;
  looks.each.reserve(members_.size());
  for (auto& one : members_) {
    looks.each.push_back(net::start_quietly([this, &one] {
      try {
        look(one);
      } catch (...) {
        one.is_away = true;
        one.trouble = "out of memory";
      }
    }));
  }
}

auto replacement::of(const member& at) const -> standing {
  if (at.is_away) return standing::away;
  if (at.kept == text_of(open_)) return standing::opened;
  if (at.kept == text_of(closed_)) return standing::closed;
  if (at.kept.empty()) return standing::before;
  const auto found = script::parse_quorum_record(at.kept);
  if (!found || found->generation >= open_.generation) return standing::other;
  if (at.is_old) {
    const bool is_of_old = found->generation < old_.generation || found->servers == old_.servers;
    return is_of_old ? standing::before : standing::other;
  }
  // A list that nobody has closed may be in use.
  return found->is_open ? standing::other : standing::before;
}

std::size_t replacement::count(bool member::*list, std::initializer_list<standing> which) const {
  return names(list, which).size();
}

std::vector<std::string> replacement::names(bool member::*list, std::initializer_list<standing> which) const {
  std::vector<std::string> out;
  for (const auto& one : members_) {
    if (one.*list && std::find(which.begin(), which.end(), of(one)) != which.end()) out.push_back(one.name);
  }
  return out;
}

// Who was left out by a replacement that is through stays closed. Of several that belong elsewhere, one that is open
// says more.
auto replacement::most_telling(const member& first) const -> const member& {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& one) {
    const auto kept = script::parse_quorum_record(one.kept);
    return of(one) == standing::other && kept && kept->is_open;
  });
  return found == members_.end() ? first : *found;
}

void replacement::fail_for_other(const member& first) const {
  const auto& at = most_telling(first);
  const auto found = script::parse_quorum_record(at.kept);
  error_detail detail;
  detail.endpoint = from_;
  detail.server_text = at.name + ": it belongs to " + at.kept;
  if (found && found->generation == open_.generation) {
    detail.why = fmt::format(
        "{}: finish that replacement, with redis+quorum://{} as the new list",
        found->is_open ? "the list was replaced by another one" : "another replacement is under way", found->servers);
  } else if (found && found->generation > open_.generation) {
    detail.why =
        fmt::format("the old list is redis+quorum://{}?generation={} by now", found->servers, found->generation);
  } else {
    detail.why = fmt::format("name the list to which it belongs; if that is not used any more, redis-cli DEL {} there",
                             script::quorum_key(prefix_));
  }
  throw error{errc::other_quorum, std::move(detail)};
}

// Two addresses of one server are no two votes, and who wins refuses such a list: with it nobody could have a lock. Of
// the old list it does not matter; somebody may be on his way out of it.
void replacement::require_apart() const {
  for (auto one = members_.begin(); one != members_.end(); ++one) {
    if (!one->is_new || one->is_away || one->run_id.empty()) continue;
    const auto twin = std::find_if(std::next(one), members_.end(), [&](const auto& other) {
      return other.is_new && !other.is_away && other.run_id == one->run_id;
    });
    if (twin == members_.end()) continue;
    error_detail detail;
    detail.subject = one->name + " and " + twin->name;
    detail.why = "they are one server, which would vote twice";
    throw error{errc::invalid_uri, std::move(detail)};
  }
}

void replacement::require_known() const {
  for (const auto& one : members_) {
    if (of(one) == standing::other) fail_for_other(one);
  }
}

void replacement::require_majority(bool member::*list, std::size_t found, const std::string& missed) const {
  const auto size = size_of(list);
  if (is_majority(list, found)) return;
  error_detail detail;
  detail.endpoint = list == &member::is_old ? from_ : uri_;
  detail.why = fmt::format("{} of {} servers {}", found, size, missed);
  for (const auto& one : members_) {
    if (one.*list && one.is_away) detail.why += fmt::format("; {}: {}", one.name, one.trouble);
  }
  throw error{errc::no_quorum, std::move(detail)};
}

// A list of a later generation is in use only when it was opened. If that was begun and not finished, the list before
// it grants still, and to close this one closes nothing.
void replacement::require_in_use() const {
  if (old_.generation == 1 || how_.reopen) return;
  const auto has_been_open = [&](const member& one) {
    return of(one) == standing::closed || of(one) == standing::opened || (!one.is_away && one.kept == text_of(old_));
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
  if (is_majority(&member::is_old, found)) return;
  error_detail detail;
  detail.endpoint = from_;
  if (first != nullptr)
    detail.server_text =
        fmt::format("{}: it belongs to {}", first->name, first->kept.empty() ? "no list" : first->kept);
  detail.why = fmt::format(
      "generation {} of {} is not open: finish the replacement that opens it, or reopen it (--reopen) if its servers "
      "have "
      "lost their data",
      old_.generation, from_.substr(0, from_.find('?')));
  throw error{errc::other_quorum, std::move(detail)};
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
