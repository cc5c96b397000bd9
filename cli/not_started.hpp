// SPDX-License-Identifier: Apache-2.0
// Why a command could not be run, in words.
#pragma once

#include "message.hpp"
#include "options.hpp"

#include <string>

namespace holdfast::cli {

// `failure` is exec's errno.
fault why_not_started(const settings& s, const std::string& program, int failure);

}  // namespace holdfast::cli
