// SPDX-License-Identifier: Apache-2.0
// What nodes of a cluster and sentinels say of who is the primary, or somebody in their place: any bytes in any pieces,
// over connections that end and are made again. An answer names somebody who is in it, or says why it names nobody.
#include "engine/cluster_talk.hpp"
#include "engine/sentinel_talk.hpp"
#include "input.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using holdfast::fuzz::input;
using holdfast::fuzz::require;

constexpr std::size_t slots = 16384;

void check(const holdfast::engine::cluster_answer& said) {
  require(said.slots.has_value() == said.failure.empty());
  if (!said.slots) return;
  for (const auto& range : said.slots->ranges) {
    require(range.first <= range.last && range.last < slots);
    require(range.primary < said.slots->primaries.size());
  }
  for (const auto& replica : said.slots->replicas) require(replica.primary < said.slots->primaries.size());
}

void check(const holdfast::engine::sentinel_answer& said) {
  require(said.host.empty() == !said.failure.empty());
  require(said.host.empty() == said.port.empty());
}

template <class Talk>
void listen(Talk talk, input& from) {
  talk.begin();
  while (!from.is_over()) {
    std::string question;
    if (!talk.is_asked()) talk.ask(question);
    const auto answer = talk.on_bytes(from.text(1 + from.byte()));
    if (!answer) continue;
    check(*answer);
    if (!Talk::is_well(*answer)) talk.begin();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace engine = holdfast::engine;
  input from{data, size};
  if (from.byte() % 2 == 0) {
    listen(engine::cluster_talk{{}, {"10.0.0.1", "6379"}}, from);
  } else {
    listen(engine::sentinel_talk{{}, "primary"}, from);
  }
  return 0;
}
