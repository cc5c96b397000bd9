// SPDX-License-Identifier: Apache-2.0
// Where the local: server lives, and whether that place can be trusted. Its own file because this is the security of
// local: whoever controls the directory controls the socket, and so the locks.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::local {

struct place {
  std::string directory;  // Absolute, no trailing slash.
  bool shared = false;    // Named by the user and open to its group: files 0660, else 0600.
  bool exists = false;    // Only find() leaves this false.

  std::string socket() const { return directory + "/redis.sock"; }
  std::string lock_file() const { return directory + "/lock"; }
  std::string log_file() const { return directory + "/redis.log"; }

  // A line for each start, written before it and never removed, and one for a record that was lost. One line: this
  // server is the first and cannot have forgotten a lock; more: it may have (design, quarantine).
  std::string starts_file() const { return directory + "/starts"; }
};

// The place named by `argument`, else HOLDFAST_LOCAL_DIR, else /var/tmp/holdfast-UID, if it can be trusted: a
// directory of ours (root is no exception) with mode 0700, no symlink, on no network file system. A directory that
// `argument` names may instead be shared: mode 2770, a group of ours, any owner. Throws error with errc::local_server.
place find(std::string_view argument);

// The same, and makes the directory with mode 0700 if it is missing; its parent must exist.
place find_or_make(std::string_view argument);

// Is the server of this directory, to which a connection stands already, in its first run ever? Then it cannot have
// forgotten a lock. The order matters: whoever starts another one writes its line before.
bool is_first_run(const std::string& directory);

// Whether a file system lives on other machines too, where a socket and a file lock mean something else on each.
// `magic` is statfs's f_type. FUSE does not say; there `mount_type` decides ("fuse.sshfs"), and what is not known
// to be a local disk counts as a network.
bool is_network_file_system(unsigned long magic, std::string_view mount_type);

}  // namespace holdfast::local
