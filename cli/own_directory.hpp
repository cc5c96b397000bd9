// SPDX-License-Identifier: Apache-2.0
// Which directory somebody may be told to chmod, for messages about local: and labs.
#pragma once

#include <string>

namespace holdfast::cli {

// Is it inside a home, or inside a place for anybody's files? Everything else may be the system's, also when root owns
// it and it is root who asks: `chmod 0700 /etc` breaks the machine.
bool is_for_own_files(const std::string& directory);

// The library's reason without its advice to change the directory's mode; the reason itself if it has none.
std::string without_chmod(const std::string& why);

}  // namespace holdfast::cli
