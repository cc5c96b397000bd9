// SPDX-License-Identifier: Apache-2.0
// From one list of servers of a quorum to the next (P26): close a majority of the old list, wait until no lease of it
// can be left, open the new list. Each step is a compare-and-set of a server's record, so that it can be repeated, and
// two who do it at once cannot both get through. What to do next goes out, what has come of it comes in.
#pragma once

#include "script/quorum_record.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::engine {

class list_replacement {
public:
  // The new list as a client is to be given it, but for its generation: that is one more than that of the old one.
  struct lists {
    script::quorum_record from;
    script::quorum_record to;
    std::string from_name;           // For people.
    std::string to_name;             // Likewise.
    std::string record_key;          // Likewise.
    std::chrono::milliseconds hold;  // The longest that a lease of the old list may live, as far as its operator knows.
    bool reopen = false;             // The old list was open, and its servers have forgotten that.
  };
  struct member {
    std::string name;
    bool is_old = false;
    bool is_new = false;
    std::string kept{};    // Its record; empty: it has none.
    std::string run_id{};  // Empty: an ACL hides it.
    std::string trouble{};
    bool is_away = false;
    bool was_told_away = false;
    std::chrono::milliseconds hold{0};  // The largest of its clients, as their epoch has ever said.
  };

  // ---- what to do next ----
  struct look_at_all {};
  struct look {
    std::size_t at;
  };
  struct write {
    std::size_t at;
    script::quorum_record record;
    std::string before;  // Over which it is to be written.
  };
  struct wait {
    std::chrono::milliseconds time;
  };
  struct tell_away {
    std::size_t at;
  };
  struct tell_goes_on {};  // An earlier call has waited.
  struct failure {
    errc code;
    error_detail why;
  };
  struct done {};
  using action = std::variant<look_at_all, look, write, wait, tell_away, tell_goes_on, failure, done>;

  // `names`: of the servers of both lists. The members stand in the order of their names: all who replace meet the same
  // server first.
  list_replacement(lists what, const std::vector<std::string>& from, const std::vector<std::string>& to);

  // Each once the one before it has been done, and nothing behind failure and done.
  action next();

  // ---- what has come of it ----
  struct seen {
    std::string kept;
    std::string run_id;
    std::string epoch;  // What its epoch key holds (epoch.lua).
  };
  void on_seen(std::size_t at, seen what);
  // It does not answer, or with an error.
  void on_away(std::size_t at, std::string trouble);
  // With `instead` it keeps that by now, and nothing was written.
  void on_written(std::size_t at, const script::quorum_record& record, const std::optional<std::string>& instead);

  const std::vector<member>& members() const { return members_; }
  std::uint32_t generation() const { return open_.generation; }
  // For quorum_replacement.
  std::vector<std::string> closed() const { return names(&member::is_old, {standing::closed, standing::opened}); }
  std::vector<std::string> opened() const { return names(&member::is_new, {standing::opened}); }

private:
  enum class phase { begins, looks, tells, closes, looks_at_closed, waits, looks_again, opens };
  // Where a server stands between the two lists, by the record that it keeps.
  enum class standing {
    away,    // It does not answer.
    before,  // It has not heard of the new list.
    closed,  // For the old list, and not open for the new one.
    opened,  // For the new list.
    rival,   // Closed for another new list of the same generation, which somebody else has in mind.
    other,   // It belongs to none of these.
  };

  void add(const std::vector<std::string>& names, bool member::*which);
  action enter(phase next);
  std::optional<action> check() const;
  action tell();
  action close();
  action look_or_open();
  action wait_for_leases();
  action open();
  void mind_other(std::size_t at);
  standing of(const member& at) const;
  std::chrono::milliseconds longest_hold() const;
  bool is_closed_by_now(const script::quorum_record& list) const;
  bool had_waited() const;
  std::optional<failure> not_apart() const;
  std::optional<failure> not_known() const;
  std::optional<failure> not_in_use() const;
  std::size_t size_of(bool member::*list) const {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(), [&](const auto& one) { return one.*list; }));
  }
  bool is_majority(bool member::*list, std::size_t found) const { return found > size_of(list) / 2; }
  std::optional<failure> no_majority(bool member::*list, std::size_t found, const std::string& missed) const;
  std::size_t count(bool member::*list, std::initializer_list<standing> which) const;
  std::vector<std::string> names(bool member::*list, std::initializer_list<standing> which) const;
  const member& most_telling(const member& first) const;
  failure fail_for_other(const member& first) const;
  std::size_t closed_for_us() const { return count(&member::is_old, {standing::closed, standing::opened}); }
  bool is_outdone() const;
  failure fail_for_rival() const;

  lists what_;
  script::quorum_record closed_;
  script::quorum_record open_;
  std::vector<member> members_{};
  phase phase_ = phase::begins;
  std::size_t at_ = 0;             // Of this phase.
  bool has_looked_again_ = false;  // At that one.
  bool is_waited_ = false;         // What may be left of the old list has ended, unless servers have forgotten since.
  bool is_through_ = false;        // An earlier call has waited.
  std::chrono::milliseconds waited_for_{0};
};

}  // namespace holdfast::engine
