// SPDX-License-Identifier: Apache-2.0
// What --json prints. Each document is one line with "version": 1; fields are added, never changed. Times are integer
// milliseconds, where a field's name ends with _us microseconds, or RFC 3339 in UTC; what is not known is null; nothing
// depends on the locale.
#pragma once

#include "message.hpp"

#include <holdfast/info.hpp>
#include <holdfast/lab.hpp>
#include <holdfast/local.hpp>
#include <holdfast/quorum.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

std::string json_of(const lock_info& info);
std::string json_of(const std::vector<lock_info>& locks);
std::string json_of(const diagnosis& found);
std::string json_of(const local_status& status);
// `nodes` are those that run, or those that were ended.
std::string json_of(const lab& servers, bool running);
std::string json_of(const quorum_replacement& done);
std::string json_of(const fault& what);

// "2026-11-20T23:35:00.123Z"
std::string rfc3339(std::chrono::system_clock::time_point when);

}  // namespace holdfast::cli
