// SPDX-License-Identifier: Apache-2.0
#include <holdfast/semaphore.hpp>

#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/with_code.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {

using detail::client_state;
using detail::permits_of;
using detail::with_code;

namespace {

void check_size(const std::string& name, int size) {
  if (size >= 1 && size <= script::most_permits) return;
  error_detail detail;
  detail.subject = "semaphore '" + name + "' of " + std::to_string(size);
  detail.why = "it must have 1 to " + std::to_string(script::most_permits) + " permits";
  throw error{errc::invalid_option, std::move(detail)};
}

// How many votes a holder needs depends on the size: the votes that were enough before leave room for one too many
// after (docs/decisions/0023-a-quorum-s-semaphore-has-one-size.md).
[[noreturn]] void refuse_on_quorum(const std::string& name, int size) {
  error_detail detail;
  detail.subject = "resize of '" + name + "' to " + std::to_string(size) + " on a quorum";
  detail.why =
      "holders of the old size and of the new could be one too many together; let all give it back, and resize it on "
      "each server alone";
  throw error{errc::invalid_option, std::move(detail)};
}

}  // namespace

semaphore::semaphore(client& locks, std::string_view name, int size) : locks_{locks}, name_{name}, size_{size} {
  check_size(name_, size);
}

semaphore::~semaphore() = default;

std::optional<lease> semaphore::try_acquire(const acquire_options& options) {
  return locks_.state_->acquire(name_, options, client_state::patience::once, permits_of(name_, options, size_));
}

std::optional<lease> semaphore::try_acquire(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&] { return try_acquire(options); });
}

lease semaphore::acquire(const acquire_options& options) {
  return locks_.state_->acquire_or_throw(name_, options, permits_of(name_, options, size_));
}

std::optional<lease> semaphore::acquire(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lease> { return acquire(options); });
}

void semaphore::resize(int size) {
  auto& state = *locks_.state_;
  state.require_ours();
  check_size(name_, size);
  if (state.is_of_quorum()) refuse_on_quorum(name_, size);
  const auto keys = state.counted_keys_of(state.name_of(name_));
  const auto reply = state.ask(keys, script::resize(keys, size), engine::question::repeat::timed);
  state.throw_if_error(reply, "key '" + keys.holder + "'");
  const auto parsed = script::parse_change(reply);
  if (!parsed) state.fail(errc::unexpected_reply, {});
  if (!parsed->wrong_kind.empty()) state.fail_wrong_kind(keys, parsed->wrong_kind);
  size_ = size;
}

void semaphore::resize(int size, std::error_code& ec) {
  with_code(ec, [&] { resize(size); });
}

}  // namespace v0
}  // namespace holdfast
