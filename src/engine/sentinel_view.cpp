// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_view.hpp"

#include "script/server_error.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace holdfast::engine {

namespace {

int number(const std::string& text) {
  int out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

void sentinel_view_talk::ask(std::string& out) {
  line_.ask(out, std::array<std::string_view, 3>{"SENTINEL", "MASTER", primary_});
}

std::optional<sentinel_view> sentinel_view_talk::on_bytes(std::string_view bytes) {
  const auto heard = line_.on_bytes(bytes);
  if (!heard) return std::nullopt;
  auto view =
      heard->reply ? read(*heard->reply) : sentinel_view{.failure = heard->nonsense, .code = errc::wrong_server};
  view.identity = line_.identity();
  return view;
}

// ["name", "mymaster", "ip", "10.0.0.1", ...], in an order that differs between versions.
sentinel_view sentinel_view_talk::read(const resp::value& reply) const {
  sentinel_view view;
  if (const auto* error = reply.as_error()) {
    view.is_unknown = error->text.starts_with("ERR No such master");
    view.failure = view.is_unknown ? "it knows no primary '" + primary_ + "'" : error->text;
    view.code = script::classify(error->text).code;
    return view;
  }
  const auto* parts = reply.as_array();
  for (std::size_t i = 0; parts && i + 1 < parts->size(); i += 2) {
    const auto* name = (*parts)[i].as_bulk();
    const auto* value = (*parts)[i + 1].as_bulk();
    if (!name || !value) break;
    if (*name == "ip") view.host = *value;
    if (*name == "port") view.port = *value;
    if (*name == "flags") view.is_down = value->find("_down") != std::string::npos;
    if (*name == "num-other-sentinels") view.others = number(*value);
    if (*name == "quorum") view.quorum = number(*value);
  }
  if (view.host.empty() || view.port.empty()) {
    view = {.failure = "its answer is none that a sentinel gives", .code = errc::wrong_server};
  }
  return view;
}

}  // namespace holdfast::engine
