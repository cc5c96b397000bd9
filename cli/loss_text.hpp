// SPDX-License-Identifier: Apache-2.0
// Why a lease ended, in words: what `run` and `hold` say when they lose it.
#pragma once

#include "child.hpp"
#include "message.hpp"
#include "options.hpp"

#include <holdfast/lease.hpp>

#include <chrono>
#include <string>
#include <system_error>

namespace holdfast::cli {

// The lease as it was when it was given up, which is before it ends.
struct ending_lease {
  std::chrono::milliseconds remaining;
  std::error_code reason;              // lease::lost_reason().
  std::chrono::milliseconds moved_by;  // How far renewals have moved its end.
  std::error_code trouble;             // renewal_news::trouble().
};

// 'NAME' (token N).
std::string named(const lease& held);

// E12 without a consequence: `text` is "lost 'NAME' (token N): HOW". `fix` may be empty.
fault explain_loss(const std::string& name, const ending_lease& how, const settings& s, const std::string& endpoint);

// E12 whole: we stood still, and our watchdog has ended the command, or has begun to.
fault explain_watchdog(const lease& held, const settings& s, const child& command);

}  // namespace holdfast::cli
