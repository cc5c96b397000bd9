// SPDX-License-Identifier: Apache-2.0
// Opening what lies in a directory that may be shared with a group: any member can put there what it likes. A FIFO
// would have us wait for ever, and a link would have us read, or as root change, what is elsewhere.
#pragma once

#include "local/descriptor.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace holdfast::local {

// Under one name only: by a second one it could be anybody's. With none, somebody has put another in its place.
bool is_plain(const struct stat& seen);

// Throws error with errc::local_server.
[[noreturn]] void refuse_as_not_plain(const std::string& path);

// open(2), which waits for nobody and follows nothing. Not open where that fails, and errno says why. Throws error with
// errc::local_server for what is no plain file.
descriptor open_plain(const std::string& path, int flags, mode_t mode = 0);

// The same for what is made if it is missing: then with its mode, whatever our umask, before it has its name. Whoever
// is ended in between leaves nothing that keeps the group out. What is there and ours gets the mode, and one that is
// for a group the group of its directory, which may have been given to that later.
descriptor open_or_make_plain(const std::string& path, int flags, mode_t mode);

// The same as open_plain() of a name in an open directory; `path` is what an error calls it.
descriptor open_plain_in(int directory, const std::string& name, const std::string& path, int flags, mode_t mode = 0);

// All that is still to be read; nullopt, with errno, if it cannot be.
std::optional<std::string> rest_of(const descriptor& file);

// For whoever has something else to tell than what is wrong with this file.
std::string text_or_nothing(const std::string& path);

}  // namespace holdfast::local
