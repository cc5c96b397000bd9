// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace holdfast::local {

// A path as one word of a command line that a message proposes: in quotes for a POSIX shell, unless it needs none. (The
// command has shell_quoted() of its own, for it sees public headers only.)
std::string shell_word(std::string_view path);

}  // namespace holdfast::local
