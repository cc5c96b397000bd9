// SPDX-License-Identifier: Apache-2.0
// From one list of servers to the next (P26), as `quorum replace` goes through it.
#pragma once

#include "client/client_state.hpp"
#include "script/quorum_record.hpp"

#include <holdfast/quorum.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

// One replacement, under way or to be gone on with. What the servers say is in quorum_replacement.cpp, what is done
// about it in quorum_replace.cpp. For one thread; `how` must outlive it.
class replacement {
public:
  replacement(const settings& from, const settings& to, const replace_options& how);
  quorum_replacement run();

private:
  // Where a server stands between the two lists, by the record that it keeps.
  enum class standing {
    away,    // It does not answer.
    before,  // It has not heard of the new list.
    closed,  // For the old list, and not open for the new one.
    opened,  // For the new list.
    other,   // It belongs to neither.
  };

  struct member {
    std::string name;
    std::shared_ptr<client_state> state;
    bool is_old = false;
    bool is_new = false;
    std::string kept{};  // Its record; empty: it has none.
    std::string run_id{};
    std::string trouble{};
    bool is_away = false;
    std::chrono::milliseconds hold{0};  // The largest of its clients, as their epoch says.
  };

  std::string read(member& at, const std::string& key) const;
  std::string run_id_of(member& at) const;
  void look(member& at) const;
  void look_at_all();
  standing of(const member& at) const;
  void require_apart() const;
  void require_known() const;
  void require_in_use() const;
  std::size_t size_of(bool member::*list) const {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(), [&](const auto& one) { return one.*list; }));
  }
  bool is_majority(bool member::*list, std::size_t found) const { return found > size_of(list) / 2; }
  void require_majority(bool member::*list, std::size_t found, const std::string& missed) const;
  bool write(member& at, const script::quorum_record& record) const;
  bool write_or_leave_out(member& at, const script::quorum_record& record) const;
  bool had_waited() const;
  void close_all();
  void wait();
  void wait_while_closed();
  void open_all();
  void leave_out(member& at, const error& e) const;
  std::size_t count(bool member::*list, std::initializer_list<standing> which) const;
  std::vector<std::string> names(bool member::*list, std::initializer_list<standing> which) const;
  const member& most_telling(const member& first) const;
  [[noreturn]] void fail_for_other(const member& first) const;
  void tell(const replace_progress& what) const {
    if (how_.tell) how_.tell(what);
  }

  const replace_options& how_;
  const std::string from_;
  std::string prefix_;
  script::quorum_record old_;
  script::quorum_record closed_;
  script::quorum_record open_;
  std::string uri_;
  std::vector<member> members_{};  // In the order of their names: all who replace meet the same server first.
  std::chrono::milliseconds waited_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
