// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "script/reply.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

namespace holdfast::fuzz {

namespace {

template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  require(read.ec == std::errc{} && read.ptr == text.data() + text.size());
  return number;
}

std::string_view take_line(std::string_view& bytes, char kind) {
  require(!bytes.empty() && bytes.front() == kind);
  const auto end = bytes.find("\r\n");
  require(end != bytes.npos);
  const auto line = bytes.substr(1, end - 1);
  bytes.remove_prefix(end + 2);
  return line;
}

// One request off the front.
std::vector<std::string_view> take_request(std::string_view& bytes) {
  std::vector<std::string_view> words(number_in<std::size_t>(take_line(bytes, '*')));
  for (auto& word : words) {
    const auto size = number_in<std::size_t>(take_line(bytes, '$'));
    require(bytes.size() >= size + 2 && bytes.substr(size, 2) == "\r\n");
    word = bytes.substr(0, size);
    bytes.remove_prefix(size + 2);
  }
  require(!words.empty());
  return words;
}

std::optional<script::id> script_of(const std::vector<std::string_view>& words) {
  for (const auto& source : script::all()) {
    if (words[0] == "EVALSHA" && words.at(1) == source.sha1) return source.which;
    if (words[0] == "EVAL" && words.at(1) == source.text) return source.which;
  }
  require(words[0] != "EVALSHA" && words[0] != "EVAL");
  return std::nullopt;
}

enum class purpose { acquire, renew, release, other };

purpose purpose_of(const std::optional<script::id>& what) {
  if (!what) return purpose::other;
  switch (*what) {
    case script::id::acquire:
    case script::id::wait:
    case script::id::wait_counted:
    case script::id::look:
    case script::id::look_counted: return purpose::acquire;
    case script::id::renew:
    case script::id::renew_counted: return purpose::renew;
    case script::id::release:
    case script::id::release_counted:
    case script::id::leave:
    case script::id::leave_counted: return purpose::release;
    default: return purpose::other;
  }
}

}  // namespace

std::string ledger::label_of(std::size_t call) { return "c" + std::to_string(call); }

void ledger::sent(wire on, time_point now, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto words = take_request(bytes);
    if (const auto what = script_of(words)) {
      sent_script(on, now, *what, words);
    } else {
      open_[static_cast<std::size_t>(on)].push_back({std::nullopt, {}, 0, now});
    }
  }
}

void ledger::sent_script(wire on, time_point now, script::id what, const std::vector<std::string_view>& words) {
  const std::size_t first = 3 + number_in<std::size_t>(words.at(2));
  const auto argument = [&](std::size_t i) { return words.at(first + i); };
  const std::string owner{words.size() > first ? argument(0) : std::string_view{}};
  std::size_t others = 0;
  switch (purpose_of(what)) {
    case purpose::acquire: {
      const bool is_look = what == script::id::look || what == script::id::look_counted;
      if (!is_look) {
        entries_[owner].call = number_in<std::size_t>(argument(4).substr(1));
        ttls_[owner] = std::chrono::milliseconds{number_in<std::int64_t>(argument(1))};
      }
      const auto who = entries_.find(owner);
      require(who != entries_.end() && is_live(who->second.call));
      if (is_look) others = words.size() - std::min(words.size(), first + 6);
      break;
    }
    case purpose::renew: {
      const auto kept = leases_.find(owner);
      require(kept != leases_.end() && (kept->second.is_kept || kept->second.ended_in == operation_));
      break;
    }
    case purpose::release:
    case purpose::other: break;
  }
  open_[static_cast<std::size_t>(on)].push_back({what, owner, others, now});
}

void ledger::answered(wire on, const resp::value& what) {
  auto& open = open_[static_cast<std::size_t>(on)];
  if (open.empty()) return;
  const auto asked = std::move(open.front());
  open.pop_front();
  // Then the same is sent again, or it had no effect and nobody waits for it any more.
  if (what.as_error() && what.as_error()->text.starts_with("NOSCRIPT")) return;
  const auto purpose = purpose_of(asked.what);
  if (purpose == purpose::acquire) {
    answered_acquire(entries_.at(asked.owner), asked, what);
  } else if (purpose == purpose::release) {
    if (script::parse_release(what)) entries_.at(asked.owner).was_released = true;
  } else if (purpose == purpose::renew) {
    auto& kept = leases_.at(asked.owner);
    const auto reply = script::parse_renew(what);
    if (!reply) return;
    if (reply->what != script::renew_answer::renewed) {
      kept.was_refused = true;
    } else {
      kept.bound = std::max(kept.bound, core::deadline_of(asked.at, kept.ttl, rho));
    }
  }
}

void ledger::answered_acquire(entry& who, const sent_request& asked, const resp::value& what) {
  if (what.as_error()) return;
  const auto reply = script::parse_acquire(what);
  if (!reply) {
    who.has_copies = true;
    return;
  }
  auto good_for = ttls_[asked.owner];
  const auto* mine = std::get_if<script::mine>(&reply->what);
  if (mine) good_for = mine->remaining;
  if (mine || std::holds_alternative<script::granted>(reply->what)) {
    who.was_granted = true;
    who.granted_until = core::deadline_of(asked.at, good_for, rho);
  } else if (std::holds_alternative<script::queued>(reply->what)) {
    who.may_stand = true;
  } else if (std::holds_alternative<script::not_in_line>(reply->what)) {
    who.may_stand = false;
  } else if (std::holds_alternative<script::spent>(reply->what)) {
    who.may_stand = who.has_copies = who.was_granted = false;  // No copy of it can lock again (P9).
  }
}

void ledger::cut(wire on) {
  auto& open = open_[static_cast<std::size_t>(on)];
  for (const auto& asked : open) {
    if (purpose_of(asked.what) == purpose::acquire) entries_.at(asked.owner).has_copies = true;
  }
  open.clear();
}

bool ledger::is_open(std::string_view owner) const {
  const auto is_of = [&](const sent_request& asked) {
    return asked.owner == owner && purpose_of(asked.what) == purpose::acquire;
  };
  const auto& open = open_[static_cast<std::size_t>(wire::commands)];
  return std::any_of(open.begin(), open.end(), is_of);
}

void ledger::acquire_ended(std::size_t call, engine::acquire& how) {
  require(call_ended_in_[call] == 0);  // Its outcome is told once.
  call_ended_in_[call] = operation_;
  unsettled_ = how.take_unsettled();
  const auto* got = std::get_if<core::got_lease>(&how.end());
  if (got) {
    const auto& granted = entries_.at(std::string{how.owner().hex()});
    require(granted.call == call && granted.was_granted && got->deadline <= granted.granted_until);
  }
  for (const auto& [owner, who] : entries_) {
    if (who.call != call) continue;
    const bool may_have_copies = who.has_copies || is_open(owner);
    if (got && how.owner().hex() == owner) {
      require(!who.has_copies || got->was_repeated);
      continue;
    }
    if (!may_have_copies && !who.may_stand && !who.was_granted) continue;
    const auto is_of = [&name = owner](const engine::unsettled& u) { return u.owner.hex() == name; };
    const auto let_go = std::find_if(unsettled_.begin(), unsettled_.end(), is_of);
    require(let_go != unsettled_.end());
    require(!may_have_copies || let_go->not_after != server_time{});
  }
}

void ledger::release_ended(const owner_id& owner, release_outcome how) const {
  require(how == release_outcome::unknown || entries_.at(std::string{owner.hex()}).was_released);
}

void ledger::lease_kept(const owner_id& owner, time_point deadline, std::chrono::milliseconds ttl) {
  leases_[std::string{owner.hex()}] = {true, 0, deadline, ttl, false};
}

void ledger::lease_ended(const owner_id& owner) {
  auto& ended = leases_.at(std::string{owner.hex()});
  ended.is_kept = false;
  ended.ended_in = operation_;
}

void ledger::lease_lost(const owner_id& owner, errc reason) {
  const auto& lost = leases_.at(std::string{owner.hex()});
  require(lost.is_kept);  // Told once, and not after it was let go (C4).
  require(reason == errc::lease_expired || lost.was_refused);
  lease_ended(owner);
}

bool ledger::is_kept(const owner_id& owner) const { return leases_.at(std::string{owner.hex()}).is_kept; }

time_point ledger::bound_of(const owner_id& owner) const { return leases_.at(std::string{owner.hex()}).bound; }

}  // namespace holdfast::fuzz
