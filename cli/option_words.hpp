// SPDX-License-Identifier: Apache-2.0
// The library speaks of its fields (durability.replicas); whoever typed a command knows its options (--replicas).
#pragma once

#include <string>

namespace holdfast::cli {

// "timeout = 0 ms", which is what errc::invalid_option is about, as "--server-timeout 0 ms".
std::string as_typed(const std::string& subject);

// A sentence of the library, with the options in it named as ours.
std::string in_words_of_options(std::string text);

}  // namespace holdfast::cli
