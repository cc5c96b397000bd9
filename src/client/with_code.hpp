// SPDX-License-Identifier: Apache-2.0
// From the throwing form of a call to the one with an error_code.
#pragma once

#include <system_error>

namespace holdfast {
inline namespace v0 {
namespace detail {

// Runs the throwing form; what it throws becomes `ec`.
template <class Body>
auto with_code(std::error_code& ec, Body&& body) -> decltype(body()) {
  ec.clear();
  try {
    return body();
  } catch (const std::system_error& e) {
    ec = e.code();
  }
  return decltype(body())();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
