// SPDX-License-Identifier: Apache-2.0
#include "option_ranges.hpp"

#include "environment.hpp"

#include <holdfast/detail/longest_wait.hpp>
#include <holdfast/error.hpp>
#include <holdfast/names.hpp>
#include <holdfast/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

[[noreturn]] void refuse(std::string subject, std::string why) {
  throw error{errc::invalid_option, {.subject = std::move(subject), .why = std::move(why)}};
}

void check_span(const char* field, milliseconds value, milliseconds least, milliseconds most) {
  if (value >= least && value <= most) return;
  refuse(fmt::format("{} = {} ms", field, value.count()),
         fmt::format("it must be {} to {} ms", least.count(), most.count()));
}

void check_name(const settings& s) {
  std::error_code ec;
  std::string why;
  if (lock_name::parse(s.name, s.plain ? naming::plain : naming::holdfast, ec, &why)) return;
  throw error{ec, {.why = std::move(why)}};
}

const char* counted_by(taking_mode mode) {
  switch (mode) {
    case taking_mode::exclusive: break;
    case taking_mode::writing: return "-x";
    case taking_mode::reading: return "-s";
    case taking_mode::permit: return "-l";
  }
  return nullptr;
}

void check_taking(const settings& s) {
  if (const auto* option = counted_by(s.mode); option && s.plain)
    refuse(fmt::format("plain naming, with {}", option),
           "semaphores and shared locks are not there under plain naming: nobody else knows them");
  const auto max_ttl = s.max_ttl.value_or(client_options{}.max_ttl);
  check_span("max_ttl", max_ttl, 100ms, 24h);
  check_span("ttl", s.ttl, 100ms, max_ttl);
  const auto confirmed_within = s.replicas_timeout.value_or(durability{}.timeout);
  // Of one that is out of its own range the library speaks.
  const auto longest = std::min<milliseconds>(s.server_timeout.value_or(client_options{}.timeout), 1h) / 2;
  if (s.replicas > 0 && confirmed_within <= longest && s.ttl / 4 < confirmed_within)
    refuse(fmt::format("ttl = {} ms", s.ttl.count()),
           fmt::format("with replicas it must be {} ms or more, four times durability.timeout",
                       4 * confirmed_within.count()));
  if (s.max_hold) check_span("max_hold", *s.max_hold, s.ttl, detail::longest_wait);
  if (s.min_fence.value() >= fencing_token::max_value)
    refuse("min_fence = " + s.min_fence.to_string(), "it must be below 2^53 - 1");
}

// The library uses a key for a certificate alone. That may stand in the URI; and of a server without TLS it says more.
void check_key(const settings& s) {
  const auto uri = s.uri ? std::string_view{*s.uri} : variable("HOLDFAST_URI");
  const bool has_cert = !s.cert.empty() || uri.find("?cert=") != uri.npos || uri.find("&cert=") != uri.npos;
  if (!s.key.empty() && !has_cert && uri.starts_with("rediss"))
    throw usage_error{"--key says nothing without --cert: it is the key of a certificate",
                      "--cert FILE; or leave --key out"};
}

}  // namespace

void check_ranges(command which, const settings& s) {
  if (takes_name(which) && which != command::ls) check_name(s);
  check_key(s);
  if (which == command::run || which == command::hold) check_taking(s);
  if (s.wait) check_span("wait", *s.wait, 0ms, detail::longest_wait);
  if (which == command::break_lock && s.why.size() > 256)
    refuse(fmt::format("why of {} bytes", s.why.size()), "at most 256 bytes are kept");
}

}  // namespace holdfast::cli
