// SPDX-License-Identifier: Apache-2.0
#include "client/lease_set.hpp"

#include "net/clock.hpp"
#include "net/uncancelled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

namespace holdfast {
inline namespace v0 {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace detail {

namespace {

std::vector<std::string> in_order(const std::vector<std::string>& names) {
  const auto refuse = [](std::string subject, std::string why) {
    error_detail detail;
    detail.subject = std::move(subject);
    detail.why = std::move(why);
    throw error{errc::invalid_option, std::move(detail)};
  };
  if (names.empty()) refuse("acquire_all of no names", "there is nothing to hold; name at least one lock");
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse("'" + *twice + "'", "it is named twice; taking it again would wait for itself");
  return sorted;
}

// Cancels the wait for the next one when the caller says so, and also when one that is held already is lost.
class waiting {
public:
  explicit waiting(const std::stop_token& cancel) : by_caller_{cancel, stop_request{stop_}} {}

  std::stop_token token() const { return stop_.get_token(); }
  void also_when(const std::stop_token& lost) { by_loss_.emplace_back(lost, stop_request{stop_}); }

private:
  struct stop_request {
    std::stop_source what;
    void operator()() { what.request_stop(); }
  };
  std::stop_source stop_{};
  std::stop_callback<stop_request> by_caller_;
  std::list<std::stop_callback<stop_request>> by_loss_{};
};

}  // namespace

lease_set acquire_all(client_state& state, const std::vector<std::string>& names, const acquire_options& options) {
  const time_point started_at = net::boottime_now();
  state.require_ours();
  const auto sorted = in_order(names);
  for (const auto& name : sorted) (void)state.name_of(name);  // A bad one is told before any is waited for.
  // Whatever happens: what is held is released by its destructors.
  std::vector<lease> held;
  waiting stop{options.cancel};
  for (const auto& name : sorted) {
    acquire_options left = options;
    left.cancel = stop.token();
    if (options.wait && options.wait->count() > 0) {
      const auto spent = duration_cast<milliseconds>(net::boottime_now() - started_at);
      left.wait = std::max(milliseconds{1}, *options.wait - spent);
    }
    try {
      const auto how = held.empty() ? client_state::patience::as_told : client_state::patience::what_is_left;
      held.push_back(state.acquire_or_throw(name, left, {}, how));
    } catch (const error& e) {
      // It was not the caller who stopped us: then one of those has the reason. On the callback thread, where nobody
      // hears of a loss meanwhile, it may have it too when the time is over.
      const bool is_stopped = e.code() == errc::cancelled || e.code() == errc::cancelled_in_flight;
      if ((is_stopped && !options.cancel.stop_requested()) || e.code() == errc::timed_out) {
        for (const auto& one : held) one.check();
      }
      if (e.code() == errc::timed_out && !held.empty()) {
        auto detail = e.detail();
        detail.why = fmt::format("{} of {} locks were taken when its time was over", held.size(), sorted.size());
        throw error{errc::timed_out, std::move(detail)};
      }
      throw;
    }
    stop.also_when(held.back().lost());
  }

  client_state::records each;
  for (const auto& one : held) each.push_back(lease_handle::of(one).record);
  auto handle = std::make_unique<lease_set_handle>(state.shared_from_this(), client_state::records{}, names);
  handle->records = state.join(each);
  for (auto& one : held) (void)lease_handle::taken_from(one);
  return lease_set{std::move(handle)};
}

}  // namespace detail

using detail::lease_set_handle;

lease_set::lease_set() noexcept = default;
lease_set::lease_set(std::unique_ptr<lease_set_handle> handle) noexcept : handle_{std::move(handle)} {}
lease_set::lease_set(lease_set&& other) noexcept = default;

lease_set& lease_set::operator=(lease_set&& other) noexcept {
  lease_set taken{std::move(other)};
  std::swap(handle_, taken.handle_);
  return *this;
}

lease_set::~lease_set() {
  if (!handle_) return;
  if (!handle_->owner->is_ours()) {
    (void)handle_.release();  // Leaked on purpose: its threads and mutexes are the parent's (P33).
    return;
  }
  const net::uncancelled until_done;
  handle_->owner->drop_all(handle_->records);
  handle_.reset();
}

lease_set::operator bool() const noexcept { return handle_ != nullptr; }

const std::vector<std::string>& lease_set::names() const {
  if (!handle_) throw error{errc::empty_handle};
  return handle_->names;
}

fencing_token lease_set::token(std::string_view name) const {
  if (!handle_) throw error{errc::empty_handle};
  for (const auto& one : handle_->records) {
    if (one->name == name) return one->token;
  }
  error_detail detail;
  detail.subject = "'" + std::string{name} + "'";
  detail.why = "the set has no such lock; names() says which it has";
  throw error{errc::invalid_option, std::move(detail)};
}

bool lease_set::valid() const noexcept {
  if (!handle_ || !handle_->owner->is_ours()) return false;
  const auto now = net::boottime_now();
  const auto& all = handle_->records;
  return std::all_of(all.begin(), all.end(), [&](const auto& one) { return one->deadline.is_ahead(now); });
}

milliseconds lease_set::remaining() const noexcept {
  if (!handle_ || !handle_->owner->is_ours()) return milliseconds{0};
  const auto now = net::boottime_now();
  duration least = duration::max();
  for (const auto& one : handle_->records) least = std::min(least, one->deadline.left(now));
  return duration_cast<milliseconds>(least);
}

void lease_set::check() const {
  if (!handle_) throw error{errc::empty_handle};
  handle_->owner->require_ours();
  if (valid()) return;
  const auto& all = handle_->records;
  const auto lost = std::find_if(all.begin(), all.end(), [](const auto& one) { return one->lost_reason != errc{}; });
  error_detail detail;
  detail.subject = "'" + (lost == all.end() ? all.front() : *lost)->name + "'";
  throw error{lost_reason() ? lost_reason() : make_error_code(errc::lease_expired), std::move(detail)};
}

std::stop_token lease_set::lost() const noexcept {
  return handle_ ? handle_->records.front()->lost.get_token() : std::stop_token{};
}

std::stop_token lease_set::at_risk() const noexcept {
  return handle_ ? handle_->records.front()->at_risk.get_token() : std::stop_token{};
}

std::error_code lease_set::lost_reason() const noexcept {
  if (!handle_) return {};
  for (const auto& one : handle_->records) {
    if (const errc reason = one->lost_reason; reason != errc{}) return make_error_code(reason);
  }
  return {};
}

release_outcome lease_set::release() {
  if (!handle_) throw error{errc::empty_handle};
  handle_->owner->require_ours();
  const net::uncancelled until_done;
  const auto handle = std::move(handle_);
  return handle->owner->release_all(handle->records);
}

}  // namespace v0
}  // namespace holdfast
