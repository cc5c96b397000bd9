// SPDX-License-Identifier: Apache-2.0
// The long texts of `holdfast help`: they are prose, and prose has a file of its own.
#pragma once

#include <span>
#include <string>

namespace holdfast::cli {

struct help_text {
  const char* name;
  const char* text;  // Ends with a line break.
};

std::span<const help_text> help_topics();
std::span<const help_text> error_codes();  // "E01" and so on; docs/errors.md has the same in full.

// `holdfast help acl`: the rule, from acl_rule.hpp.
std::string about_acl();

// For `holdfast help lab`: which kinds there are.
const char* about_lab();

}  // namespace holdfast::cli
