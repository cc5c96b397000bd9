// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_talk.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"
#include "script/server_error.hpp"

#include <array>
#include <utility>
#include <vector>

namespace holdfast::engine {

void cluster_talk::begin() { *this = cluster_talk{std::move(who_), std::move(asked_)}; }

void cluster_talk::ask(std::string& out) {
  HOLDFAST_ASSERT(!is_asked_);
  if (!is_known_ && !who_.password.empty()) {
    std::vector<std::string_view> words{"AUTH"};
    if (!who_.user.empty()) words.push_back(who_.user);
    words.push_back(who_.password);
    resp::append_request(out, words);
    is_introducing_ = true;
  }
  is_known_ = is_asked_ = true;
  resp::append_request(out, std::array<std::string_view, 2>{"CLUSTER", "SLOTS"});
}

std::optional<cluster_answer> cluster_talk::on_bytes(std::string_view bytes) {
  reader_.feed(bytes);
  while (auto reply = reader_.next()) {
    if (is_introducing_) {
      is_introducing_ = false;
      if (!reply->as_error()) continue;
    }
    is_asked_ = false;
    return read(*reply);
  }
  if (reader_.failure().empty()) return std::nullopt;
  is_asked_ = false;
  cluster_answer nonsense;
  nonsense.failure = reader_.failure();
  return nonsense;
}

cluster_answer cluster_talk::read(const resp::value& reply) const {
  cluster_answer out;
  if (const auto* error = reply.as_error()) {
    const auto what = script::classify(error->text);
    const bool is_single = error->text.starts_with("ERR This instance has cluster support disabled") ||
                           error->text.starts_with("ERR unknown command");
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
