// SPDX-License-Identifier: Apache-2.0
// Those of one connection who stand in line for the same lock, in the line's order. One look is enough for all of them
// (P8): the first makes it, because it is the first whose place the server has something to say about.
#pragma once

#include <boost/intrusive/set.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace holdfast::engine {

// What a waiter is while it stands there. Linked, not listed: ten thousand may stand.
struct line_mate {
  std::uint64_t ticket = 0;  // 0: it stands nowhere.
  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> place{};
};

class line_mates {
public:
  struct by_ticket {
    using type = std::uint64_t;
    type operator()(const line_mate& who) const { return who.ticket; }
  };
  using line = boost::intrusive::multiset<
      line_mate, boost::intrusive::member_hook<line_mate, decltype(line_mate::place), &line_mate::place>,
      boost::intrusive::key_of_value<by_ticket>, boost::intrusive::constant_time_size<false>>;

  // Where it stands from now on, and no longer where it stood. 0: nowhere.
  void place(const std::string& key, line_mate& who, std::uint64_t ticket) {
    if (ticket == who.ticket) return;
    line* const to = ticket != 0 ? &lines_[key] : nullptr;  // First: without memory it stays where it stood.
    if (who.ticket != 0) {
      const auto found = lines_.find(key);
      found->second.erase(found->second.iterator_to(who));
      if (ticket == 0 && found->second.empty()) lines_.erase(found);
    }
    who.ticket = ticket;
    if (to) to->insert(who);
  }
  // Null: nobody stands there.
  line* of(const std::string& key) {
    const auto found = lines_.find(key);
    return found == lines_.end() ? nullptr : &found->second;
  }

private:
  std::unordered_map<std::string, line> lines_;  // By holder key.
};

}  // namespace holdfast::engine
