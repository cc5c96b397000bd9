// SPDX-License-Identifier: Apache-2.0
// The public face: each call in its throwing form; the error_code forms catch what it throws.
#include <holdfast/client.hpp>

#include "client/client_state.hpp"
#include "client/diagnose.hpp"
#include "client/lease_set.hpp"
#include "client/settings.hpp"
#include "client/survey.hpp"
#include "client/with_code.hpp"
#include "local/local_server.hpp"
#include "net/uncancelled.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {

using detail::client_state;
using detail::with_code;

namespace {

std::shared_ptr<client_state> make_state(std::optional<std::string_view> uri, client_options options) {
  auto resolved = detail::resolve(uri, std::move(options));
  if (resolved.server.is_local) {
    const auto found = local::start(resolved.server.local_directory, resolved.options.timeout);
    resolved.server.where.where = net::unix_address{found.socket};
    resolved.server.display = detail::local_display(found.directory);
    resolved.server.local_directory = found.directory;
  }
  return client_state::make(resolved);
}

}  // namespace

client::client(client_options options) : state_{make_state(std::nullopt, std::move(options))} {}
client::client(std::string_view uri, client_options options) : state_{make_state(uri, std::move(options))} {}
client::client(client&&) noexcept = default;

client& client::operator=(client&& other) noexcept {
  client taken{std::move(other)};
  std::swap(state_, taken.state_);
  return *this;
}

client::~client() {
  if (!state_) return;
  const net::uncancelled until_done;
  if (!state_->is_ours()) {
    // Leaked on purpose: threads, mutexes and connections are the parent's (P33).
    new std::shared_ptr<client_state>{std::move(state_)};
    return;
  }
  state_->cancel_async();
  // Nobody else can make a handle now. With leases still out, the last of them ends the threads.
  if (state_.use_count() == 1) state_->close_and_wait();
  state_.reset();
}

const std::string& client::endpoint() const noexcept { return state_->endpoint(); }

std::optional<lease> client::try_acquire(std::string_view name, const acquire_options& options) {
  return state_->acquire(name, options, client_state::patience::once);
}

std::optional<lease> client::try_acquire(std::string_view name, const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&] { return try_acquire(name, options); });
}

lease client::acquire(std::string_view name, const acquire_options& options) {
  return state_->acquire_or_throw(name, options);
}

std::optional<lease> client::acquire(std::string_view name, const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lease> { return acquire(name, options); });
}

std::optional<lease> client::acquire_in_time(std::string_view name, const acquire_options& options) {
  try {
    return acquire(name, options);
  } catch (const error& e) {
    if (e.code() != errc::timed_out) throw;
    return std::nullopt;
  }
}

lease_set client::acquire_all(const std::vector<std::string>& names, const acquire_options& options) {
  return detail::acquire_all(*state_, names, options);
}

std::optional<lease_set> client::acquire_all(const std::vector<std::string>& names, const acquire_options& options,
                                             std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lease_set> { return acquire_all(names, options); });
}

lock_info client::inspect(std::string_view name) { return detail::inspect(*state_, name, state_->options().timeout); }

std::optional<lock_info> client::inspect(std::string_view name, std::error_code& ec) {
  return inspect(name, state_->options().timeout, ec);
}

std::optional<lock_info> client::inspect(std::string_view name, std::chrono::milliseconds timeout,
                                         std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lock_info> {
    // Below zero it would overflow in the units of a time point.
    const auto within = std::clamp(timeout, std::chrono::milliseconds{0}, state_->options().timeout);
    return detail::inspect(*state_, name, within);
  });
}

std::vector<lock_info> client::list(std::string_view glob) { return detail::list(*state_, glob); }

std::vector<lock_info> client::list(std::string_view glob, std::error_code& ec) {
  return with_code(ec, [&] { return list(glob); });
}

void client::break_lock(std::string_view name, fencing_token seen, const break_options& options) {
  detail::break_lock(*state_, name, seen, options);
}

void client::break_lock(std::string_view name, fencing_token seen, const break_options& options, std::error_code& ec) {
  with_code(ec, [&] { break_lock(name, seen, options); });
}

void client::declare_nothing_forgotten() { state_->declare_nothing_forgotten(); }

void client::declare_nothing_forgotten(std::error_code& ec) {
  with_code(ec, [&] { declare_nothing_forgotten(); });
}

diagnosis client::diagnose() { return detail::diagnose(*state_); }

std::optional<diagnosis> client::diagnose(std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<diagnosis> { return diagnose(); });
}

}  // namespace v0
}  // namespace holdfast
