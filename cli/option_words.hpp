// SPDX-License-Identifier: Apache-2.0
// The library speaks of its fields (durability.replicas); whoever typed a command knows its options (--replicas).
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// "timeout = 0 ms", which is what errc::invalid_option is about, as "--server-timeout 0ms".
std::string as_typed(const std::string& subject);

// What to type in its place, if `why` has the range ("it must be 100 to 60000 ms") within it; "holdfast help run" if
// there is no more to say.
std::string way_into_range(std::string_view subject, std::string_view why);

// A sentence of the library, with the options in it named as ours.
std::string in_words_of_options(std::string text);

// "100 to 60000 ms" as "100ms to 1m00s", as durations are typed. One that they show cut short stays as it is.
std::string in_units_of_options(std::string_view text);

}  // namespace holdfast::cli
