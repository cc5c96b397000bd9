// SPDX-License-Identifier: Apache-2.0
// Server URIs, which come from the environment and from config files. Whatever is accepted is shown without its
// password, and what is shown names the same server again.
#include "client/uri.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace detail = holdfast::detail;
  holdfast::error_detail why;
  const auto parsed = detail::parse_uri({reinterpret_cast<const char*>(data), size}, why);
  if (!parsed) return 0;
  if (parsed->is_local) return 0;
  const auto again = detail::parse_uri(parsed->display, why);
  if (!again) std::abort();
  if (!again->who.password.empty() || !again->who.user.empty()) std::abort();
  if (again->display != parsed->display || again->database != parsed->database) std::abort();
  return 0;
}
