// SPDX-License-Identifier: Apache-2.0
#include "client/reporter.hpp"

#include "client/one_line.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

std::chrono::microseconds us(duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d); }

std::shared_ptr<lease_record> record_of(const std::shared_ptr<engine::held_lease>& lease) {
  return std::static_pointer_cast<lease_record>(lease);
}

const char* why_at_risk(const lease_record& what) {
  if (what.deadline.at() >= what.last) return "max_hold is nearly over";
  return what.mode == renewal::none ? "it does not renew itself" : "renewals fail";
}

}  // namespace

reporter::reporter(std::shared_ptr<callback_thread> callbacks, std::string endpoint, log_sink log,
                   std::shared_ptr<observer> observe)
    : callbacks_{std::move(callbacks)},
      endpoint_{std::move(endpoint)},
      log_{log ? std::make_shared<const log_sink>(std::move(log)) : nullptr},
      observe_{std::move(observe)} {
  if (!log_) return;
  callbacks_->on_slow([to = log_](duration took) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    (*to)({log_level::warning, fmt::format("a callback took {} ms: lost() of other leases may have been late", ms)});
  });
}

void reporter::log(log_level level, std::string_view text) noexcept {
  if (!log_) return;
  try {
    callbacks_->post([to = log_, record = log_record{level, on_one_line(text)}] { (*to)(record); });
  } catch (...) {
    // As in tell().
  }
}

void reporter::on_up() {
  log(log_level::info, "connected to " + endpoint_);
  tell([endpoint = endpoint_](observer& o) { o.on_connected(endpoint); });
}

void reporter::on_down(const engine::connection_failure& failure) {
  log(log_level::warning, fmt::format("connection to {} ended: {}", endpoint_, failure.text));
  tell([endpoint = endpoint_, code = failure.code](observer& o) { o.on_disconnected(endpoint, code); });
}

void reporter::on_clock_step(duration step) {
  log(log_level::warning, fmt::format("the clock of {} moved {} ms against ours", endpoint_,
                                      std::chrono::duration_cast<std::chrono::milliseconds>(step).count()));
  tell([step](observer& o) { o.on_clock_step(us(step)); });
}

void reporter::on_at_risk(const std::shared_ptr<engine::held_lease>& lease) {
  auto record = record_of(lease);
  log(log_level::warning,
      fmt::format("lease '{}' (token {}) is at risk: {}", record->name, record->token.value(), why_at_risk(*record)));
  callbacks_->post([record = std::move(record)] {
    if (!record->is_let_go) record->at_risk.request_stop();
  });
}

void reporter::on_lost(const std::shared_ptr<engine::held_lease>& lease, errc reason) {
  auto record = record_of(lease);
  const auto held = us(net::boottime_now() - record->granted_at);
  callbacks_->post_or_end([record] {
    if (!record->is_let_go) record->lost.request_stop();
  });
  log(log_level::error,
      fmt::format("lost '{}' (token {}): {}", record->name, record->token.value(), make_error_code(reason).message()));
  tell([record, reason, held](observer& o) { o.on_lost(record->name, record->token, reason, held); });
}

void reporter::on_renewed(const std::shared_ptr<engine::held_lease>& lease, duration margin) {
  tell([record = record_of(lease), margin](observer& o) { o.on_renewed(record->name, us(margin)); });
}

void reporter::on_renew_failed(const std::shared_ptr<engine::held_lease>& lease, errc reason) {
  tell([record = record_of(lease), reason](observer& o) { o.on_renew_failed(record->name, reason); });
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
