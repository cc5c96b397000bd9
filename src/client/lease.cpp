// SPDX-License-Identifier: Apache-2.0
#include <holdfast/lease.hpp>

#include "client/client_state.hpp"
#include "client/with_code.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {

using detail::lease_handle;

lease::lease() noexcept = default;
lease::lease(std::unique_ptr<lease_handle> handle) noexcept : handle_{std::move(handle)} {}
lease::lease(lease&& other) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
  lease taken{std::move(other)};
  std::swap(handle_, taken.handle_);
  return *this;
}

lease::~lease() {
  if (!handle_) return;
  if (!handle_->owner->is_ours()) {
    (void)handle_.release();  // Leaked on purpose: its threads and mutexes are the parent's (P33).
    return;
  }
  const net::uncancelled until_done;
  handle_->owner->drop(handle_->record);
  handle_.reset();
}

lease::operator bool() const noexcept { return handle_ != nullptr; }

const std::string& lease::name() const {
  if (!handle_) throw error{errc::empty_handle};
  return handle_->record->name;
}

fencing_token lease::token() const noexcept { return handle_ ? handle_->record->token : fencing_token{}; }

bool lease::valid() const noexcept {
  return handle_ && handle_->owner->is_ours() && handle_->record->deadline.is_ahead(net::boottime_now());
}

std::chrono::milliseconds lease::remaining() const noexcept {
  if (!handle_ || !handle_->owner->is_ours()) return std::chrono::milliseconds{0};
  return std::chrono::duration_cast<std::chrono::milliseconds>(handle_->record->deadline.left(net::boottime_now()));
}

void lease::check() const {
  if (!handle_) throw error{errc::empty_handle};
  handle_->owner->require_ours();
  handle_->owner->require_standing(*handle_->record);
}

std::stop_token lease::lost() const noexcept { return handle_ ? handle_->record->lost.get_token() : std::stop_token{}; }

std::stop_token lease::at_risk() const noexcept {
  return handle_ ? handle_->record->at_risk.get_token() : std::stop_token{};
}

std::error_code lease::lost_reason() const noexcept {
  if (!handle_) return {};
  const errc reason = handle_->record->lost_reason;
  return reason == errc{} ? std::error_code{} : make_error_code(reason);
}

void lease::renew() const {
  if (!handle_) throw error{errc::empty_handle};
  handle_->owner->require_ours();
  handle_->owner->renew(handle_->record);
}

void lease::renew(std::error_code& ec) const {
  detail::with_code(ec, [&] { renew(); });
}

release_outcome lease::release() {
  error_detail dropped;
  return release(dropped);
}

release_outcome lease::release(error_detail& why) {
  if (!handle_) throw error{errc::empty_handle};
  handle_->owner->require_ours();
  const net::uncancelled until_done;
  const auto handle = std::move(handle_);
  return handle->owner->release(handle->record, why);
}

}  // namespace v0
}  // namespace holdfast
