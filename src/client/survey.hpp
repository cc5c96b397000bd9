// SPDX-License-Identifier: Apache-2.0
// The calls that look at locks, or break one, on top of client_state's ask.
#pragma once

#include "client/client_state.hpp"

namespace holdfast {
inline namespace v0 {
namespace detail {

constexpr std::size_t holders_listed = 100;  // Of those who hold it together inspect.lua lists so many.

// `timeout`: how long the server may take to answer.
lock_info inspect(client_state&, std::string_view name, std::chrono::milliseconds timeout);
std::vector<lock_info> list(client_state&, std::string_view glob);
void break_lock(client_state&, std::string_view name, fencing_token seen, const break_options&);

// What one server's answer says.
lock_info info_of(std::string name, const script::inspect_reply& reply);
// Of several holders the one whose lease ends first stands for all of them.
void show_holder(lock_info& info, const holder_info& first);

// As those, of a quorum.
lock_info inspect_quorum(client_state&, std::string_view name, std::chrono::milliseconds timeout);
std::vector<lock_info> list_quorum(client_state&, std::string_view glob);
void break_on_quorum(client_state&, std::string_view name, fencing_token seen, const break_options&);
void declare_on_quorum(client_state&);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
