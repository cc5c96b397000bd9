// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_talk.hpp"

#include "script/server_error.hpp"

#include <array>

namespace holdfast::engine {

void cluster_talk::ask(std::string& out) { line_.ask(out, std::array<std::string_view, 2>{"CLUSTER", "SLOTS"}); }

std::optional<cluster_answer> cluster_talk::on_bytes(std::string_view bytes) {
  const auto heard = line_.on_bytes(bytes);
  if (!heard) return std::nullopt;
  if (heard->reply) return read(*heard->reply);
  cluster_answer nonsense;
  nonsense.failure = heard->nonsense;
  return nonsense;
}

cluster_answer cluster_talk::read(const resp::value& reply) const {
  cluster_answer out;
  if (const auto* error = reply.as_error()) {
    const auto what = script::classify(error->text);
    const bool is_single = script::is_of_no_cluster(error->text) || error->text.starts_with("ERR unknown command");
    out.failure = is_single ? "it is no cluster node: " + error->text : error->text;
    if (is_single) out.code = errc::wrong_server;
    const bool is_login =
        what.code == errc::no_password || what.code == errc::wrong_password || what.code == errc::no_permission;
    if (is_login) out.code = what.code;
    out.is_final = is_single || is_login;
    return out;
  }
  out.slots = parse_cluster_slots(reply, asked_);
  if (!out.slots) {
    out.failure = "its answer is none that a cluster node gives";
  } else if (out.slots->primaries.empty()) {
    out.slots.reset();
    out.failure = "it knows no primary that serves a slot";
  }
  return out;
}

}  // namespace holdfast::engine
