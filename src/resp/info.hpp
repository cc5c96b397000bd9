// SPDX-License-Identifier: Apache-2.0
// The text that INFO and CLUSTER INFO answer with: "name:value" lines between headings.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::resp {

// The value of that name. Empty: it is not there.
std::string info_field(std::string_view info, std::string_view name);

}  // namespace holdfast::resp
