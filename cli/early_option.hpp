// SPDX-License-Identifier: Apache-2.0
// An option that stands before the command, as git and docker have them: `holdfast --json ls`. Apart from the parser,
// which reads what is behind a command's word and has none here.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// An option with its value, as it can be shown: one that may be a URI with a password is the word URI.
std::string shown_option(std::string_view word);

// The same words in their order, for messages: the command that was named, its options, then its other words. Of `run`
// what it would run is left out. Without a command it is the one that is most likely meant, or "holdfast help". URIs as
// above.
std::string in_order(int argc, char* const* argv);

}  // namespace holdfast::cli
