// SPDX-License-Identifier: Apache-2.0
// holdfast version: of the library that was linked.
#include "exit_code.hpp"
#include "message.hpp"
#include "subcommands.hpp"

#include <holdfast/version.hpp>

#include <fmt/format.h>

namespace holdfast::cli {

int version_command() {
  print(fmt::format("holdfast {}\n", version()));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
