// SPDX-License-Identifier: Apache-2.0
// The files of a former server in a directory that is shared with a group: they may be another member's, who may be
// gone, and redis-server could read them and not append to them. And since any member can put there what it likes,
// redis-server opens nothing that is not a plain file: it follows symbolic links.
#pragma once

#include "local/directory.hpp"

#include <sys/types.h>

namespace holdfast::local {

// Whose file `user` is not gets a copy of `user`'s in its place; the directory is the group's, so we may. While no
// server runs there. Throws error with errc::local_server for what is no plain file, and for what cannot be taken over.
// Members can still exchange a file for a link between this and the start: for what is in reach of the server's user
// they must trust each other.
void adopt_files(const place& where, uid_t user);

}  // namespace holdfast::local
