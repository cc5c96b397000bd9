// SPDX-License-Identifier: Apache-2.0
// Where the local: server lives, and whether that place can be trusted. Its own file because this is the security of
// local: whoever controls the directory controls the socket, and so the locks.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace holdfast::local {

struct place {
  std::string directory;  // Absolute, no trailing slash.
  bool shared = false;    // Named by the user and open to its group: files 0660, else 0600.
  bool exists = false;    // Only find() leaves this false.
  uid_t owner = 0;        // Of the directory, if it is there.
  gid_t group = 0;

  std::string socket() const { return directory + "/redis.sock"; }
  std::string lock_file() const { return directory + "/lock"; }
  std::string log_file() const { return directory + "/redis.log"; }

  std::string append_only_directory() const { return directory + "/appendonlydir"; }
  std::string starts_file() const { return directory + "/starts"; }  // starts.hpp

  mode_t file_mode() const { return shared ? 0660 : 0600; }
  // Who a server that we start there is run as: we, but where root starts one for a group its members could make it
  // write wherever root may, so that one is the directory's owner.
  uid_t server_user() const { return shared && ::geteuid() == 0 ? owner : ::geteuid(); }
};

// The place named by `argument`, else HOLDFAST_LOCAL_DIR, else /var/tmp/holdfast-UID, if it can be trusted: a
// directory of ours (root is no exception) with mode 0700, no symlink, on no network file system. A directory that
// `argument` names may instead be shared: mode 2770, a group of ours, any owner. Throws error with errc::local_server.
place find(std::string_view argument);

// The same, and makes the directory with mode 0700 if it is missing; its parent must exist.
place find_or_make(std::string_view argument);

// What a directory is looked at for: where a server, or a lab, is looked for, a new one is no way out.
enum class aim { find, make };

// mkdir(2) with mode 0700, whatever the umask; false, with errno, where that fails (EEXIST too). Throws error with
// errc::local_server if what was made cannot be given that mode.
bool make_directory(const std::string& path);

// What another call has made with the same intent, as mkdtemp(3): with the rights that a umask has taken from us.
void restore_owners_rights(const std::string& path);

// A path from the root, without a slash at its end. Throws error with errc::local_server for a relative one where there
// is no current directory any more.
std::string absolute(std::string_view directory);

// Whether it lies in a directory that systemd has given to one service alone (PrivateTmp=, also =disconnected: a tmpfs
// with a directory `var-tmp`). `mounts`: as /proc/self/mountinfo has them; no link leads to `directory`.
bool is_private_to_a_unit(std::string_view mounts, std::string_view directory);

// Whether a file system lives on other machines too, where a socket and a file lock mean something else on each.
// `magic` is statfs's f_type. FUSE does not say; there `mount_type` decides ("fuse.sshfs"), and what is not known
// to be a local disk counts as a network.
bool is_network_file_system(unsigned long magic, std::string_view mount_type);

}  // namespace holdfast::local
