// SPDX-License-Identifier: Apache-2.0
// Which of a cluster's slots a key lies in. Here, because keys.hpp decides what a key's hash tag is.
#pragma once

#include <string_view>

namespace holdfast::script {

// 0 to 16383: of what stands between the first `{` and the next `}`, if that is something; else of the whole key.
int slot_of(std::string_view key);

}  // namespace holdfast::script
