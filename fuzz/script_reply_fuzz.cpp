// SPDX-License-Identifier: Apache-2.0
// Answers to our scripts and to WAIT from a server that may not be one: any RESP value, through every parser of
// replies, and any text through the classifier of error words and the reader of a quorum's record. A parser says
// nullopt or gives something that keeps its promises.
#include "engine/durable.hpp"
#include "resp/reader.hpp"
#include "script/message.hpp"
#include "script/quorum_record.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check(const holdfast::resp::value& v) {
  namespace script = holdfast::script;
  if (const auto reply = script::parse_acquire(v)) {
    // A grant without a token would make every write of its holder stale, or the first.
    if (const auto* granted = std::get_if<script::granted>(&reply->what)) require(granted->token.value() != 0);
    if (const auto* mine = std::get_if<script::mine>(&reply->what)) require(mine->token.value() != 0);
    require(reply->now.time_since_epoch().count() >= 0);
  }
  if (const auto reply = script::parse_renew(v)) require(reply->now.time_since_epoch().count() >= 0);
  if (const auto reply = script::parse_release(v)) require(reply->now.time_since_epoch().count() >= 0);
  if (const auto reply = script::parse_inspect(v); reply && reply->held && !reply->held->foreign) {
    require(reply->held->token.value() <= holdfast::fencing_token::max_value);
  }
  (void)script::parse_break(v);
  if (const auto reply = script::parse_epoch(v); reply && reply->what) require(reply->what->remaining.count() > 0);
  if (const auto reply = script::parse_vote(v)) {
    if (const auto* granted = std::get_if<script::granted>(&reply->what)) require(granted->token.value() != 0);
  }
  (void)script::parse_change(v);
  (void)script::parse_record_reply(v);
  holdfast::engine::connection_failure failure;
  (void)holdfast::engine::parse_wait(v, 1, failure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto holder = holdfast::script::parse_holder(bytes);
  require(holder.foreign || holder.token.value() <= holdfast::fencing_token::max_value);
  (void)holdfast::script::classify(bytes);
  if (const auto record = holdfast::script::parse_quorum_record(bytes)) {
    require(record->generation >= 1 && record->generation <= holdfast::script::most_generations);
    require(holdfast::script::parse_quorum_record(holdfast::script::text_of(*record)) == record);
  }
  if (const auto said = holdfast::script::parse_message(bytes)) {
    require(said->owner.size() == 32);
    require(said->look_in >= holdfast::duration{0} && said->look_in <= std::chrono::minutes{1});
  }
  holdfast::resp::reader input;
  input.feed(bytes);
  while (const auto one = input.next()) check(*one);
  return 0;
}
