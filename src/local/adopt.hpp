// SPDX-License-Identifier: Apache-2.0
// The files of a former server in a directory that is shared with a group: they may be another member's, who may be
// gone, and redis-server could read them and not append to them. And since any member can put there what it likes,
// redis-server opens nothing that is not a plain file: it follows symbolic links.
//
// Nor do we, at any instant: each directory is opened once and checked, and all else is done by names in it, so that a
// copy is of what lies there and comes to lie there. Both functions are for who acts as the server's user
// (as_server_user.hpp), whose all that they make is.
#pragma once

#include "local/directory.hpp"

namespace holdfast::local {

// A file that is not the server's user's, or not the group's, gets a copy of that user's in its place; the directory is
// the group's, so we may. While no server runs there. Throws error with errc::local_server for what is no plain file,
// and for what cannot be taken over. Members can still exchange a file for a link between this and the start: for what
// is in reach of the server's user they must trust each other.
void adopt_files(const place& where);

// Makes the directory of a server's append-only files, or gives it the mode that any member can take it over with:
// redis-server would make one that is its user's alone to change. It is what tells of a former server, so: after that
// was looked at (starts.hpp).
void open_to_group(const place& where);

}  // namespace holdfast::local
