// SPDX-License-Identifier: Apache-2.0
// From one list of servers to the next (P26), as `quorum replace` goes through it: engine/list_replacement decides,
// this one asks the servers, waits, and tells.
#pragma once

#include "client/client_state.hpp"
#include "engine/list_replacement.hpp"

#include <holdfast/quorum.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

// One replacement, under way or to be gone on with. How it looks at servers is in quorum_replacement.cpp, everything
// else in quorum_replace.cpp. For one thread; `how` must outlive it.
class replacement {
public:
  replacement(const settings& from, const settings& to, const replace_options& how);
  quorum_replacement run();

private:
  using flow = engine::list_replacement;
  using answer = std::variant<flow::seen, std::string>;  // Or why there is none.

  const std::string& name_of(std::size_t at) const { return flow_.members()[at].name; }
  std::string read(client_state& at, const std::string& key) const;
  std::string run_id_of(client_state& at) const;
  answer look(std::size_t at) const;
  void take(std::size_t at, answer what);
  void act(const flow::look_at_all& what);
  void act(const flow::look& what) { take(what.at, look(what.at)); }
  void act(const flow::write& what);
  void act(const flow::wait& what);
  void act(const flow::tell_away& what);
  void act(const flow::tell_goes_on& what);
  [[noreturn]] void act(const flow::failure& what);
  void act(const flow::done& what);
  [[noreturn]] void cancelled(const char* why) const;
  void tell(const replace_progress& what) const {
    if (how_.tell) how_.tell(what);
  }

  const replace_options& how_;
  const std::string from_;
  const std::string prefix_;
  const std::string uri_;  // That clients are to be given.
  flow flow_;
  std::vector<std::shared_ptr<client_state>> servers_{};  // Of each of the flow's members.
  std::chrono::milliseconds waited_{0};
  bool has_written_ = false;  // This call, or may have.
  bool is_done_ = false;
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
