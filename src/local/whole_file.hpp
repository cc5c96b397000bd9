// SPDX-License-Identifier: Apache-2.0
// Short files that are written as a whole, so that no crash and no full disk leaves half of one.
#pragma once

#include <sys/types.h>

#include <string>

namespace holdfast::local {

// Writes `text` to `path` + ".new", and gives that file its name then. `failure` is what the error says when it cannot
// be done. Throws error with errc::local_server; what was at `path` is as it was then.
void write_whole_file(const std::string& path, const std::string& text, mode_t mode, const char* failure);

}  // namespace holdfast::local
