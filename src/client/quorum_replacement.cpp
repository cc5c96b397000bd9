// SPDX-License-Identifier: Apache-2.0
// What the servers of both lists say before one is replaced by the other (P26). Nothing is written here.
#include "client/quorum_replacement.hpp"

#include "net/quiet_thread.hpp"
#include "resp/info.hpp"
#include "resp/writer.hpp"
#include "script/keys.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

std::string replacement::read(client_state& at, const std::string& key) const {
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 2>{"GET", key});
  const auto reply = at.ask_all(at.servers().front(), std::vector{std::move(bytes)}).front();
  at.throw_if_error(reply, "key '" + key + "'");
  const auto* text = reply.as_bulk();
  return text ? *text : std::string{};
}

// Empty: an ACL hides it.
std::string replacement::run_id_of(client_state& at) const {
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 2>{"INFO", "server"});
  const auto reply = at.ask_all(at.servers().front(), std::vector{std::move(bytes)}).front();
  const auto* text = reply.as_bulk();
  return text ? resp::info_field(*text, "run_id") : std::string{};
}

auto replacement::look(std::size_t at) const -> answer {
  auto& state = *servers_[at];
  try {
    flow::seen seen;
    seen.run_id = run_id_of(state);
    seen.kept = read(state, script::quorum_key(prefix_));
    seen.epoch = read(state, script::epoch_key(prefix_, {}));
    return seen;
  } catch (const error& e) {
    return e.detail().server_text.empty() ? e.code().message() : e.detail().server_text;
  }
}

void replacement::take(std::size_t at, answer what) {
  if (auto* seen = std::get_if<flow::seen>(&what)) return flow_.on_seen(at, std::move(*seen));
  flow_.on_away(at, std::get<std::string>(std::move(what)));
}

void replacement::act(const flow::look_at_all&) {
  std::vector<answer> all(servers_.size());
  net::run_each_quietly(all.size(), [&](std::size_t i) {
    try {
      all[i] = look(i);
    } catch (...) {
      all[i] = std::string{"out of memory"};
    }
  });
  for (std::size_t i = 0; i < all.size(); ++i) take(i, std::move(all[i]));
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
