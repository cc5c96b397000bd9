// SPDX-License-Identifier: Apache-2.0
// What the value of an option means. Which options there are is option_table's; how the command line is read, options'.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Throws usage_error for a value that cannot be. Of an option without a value `value` is null. A password in it is
// overwritten, so that others do not see it in the list of processes.
void apply_value(settings& s, const option_row& row, char* value);

}  // namespace holdfast::cli
