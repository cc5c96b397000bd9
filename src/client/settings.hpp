// SPDX-License-Identifier: Apache-2.0
// What a client was told, checked and resolved: argument over environment over default. The one place that reads the
// environment.
#pragma once

#include "client/uri.hpp"

#include <holdfast/options.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {
inline namespace v0 {
namespace detail {

struct settings {
  client_options options;
  server_uri server;
  bool has_alternative = false;  // As of core::acquire_settings.
  // The observer and the log hear nothing of the keeper, nor of its connection. For clients of our own.
  bool has_quiet_keeper = false;
  bool is_quorum_member = false;  // Of one of its servers, by itself.
};

// Throws holdfast::error (invalid_option, invalid_uri, no_server). Without a URI, HOLDFAST_URI.
settings resolve(std::optional<std::string_view> uri, client_options options);

// Throws holdfast::error (invalid_option) with the field, its value and its range.
void check(const acquire_options& what, const client_options& within);
// Permits are for semaphores.
void check_no_permits(const acquire_options& what);

// How long a lease of such a client may live on that a server has forgotten.
std::chrono::milliseconds hold_of(const client_options& options);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
