// SPDX-License-Identifier: Apache-2.0
// Durations as people type and read them. Its own file because every option with a time in it means the same thing
// by the same text, and because a wrong digit here is a lock held for the wrong time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

// Reads "90", "0.2" and ".2" (seconds, as flock does), "500ms", "1.5s", "2m", "1h30m", "1d", "PT15M". Finer than a
// millisecond is rounded up, so that nothing but a zero becomes zero. On failure gives nullopt and writes one
// sentence that names the text to `why`.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text, std::string& why);

// Writes "250ms", "6.7s", "3m12s", "2h05m", "3d04h": two places that matter.
std::string to_text(std::chrono::milliseconds span);

// The same for a command line that is to be copied, all of it: "90s", "1500ms".
std::string to_option(std::chrono::milliseconds span);

}  // namespace holdfast::cli
