// SPDX-License-Identifier: Apache-2.0
#include "local/directory.hpp"

#include "local/descriptor.hpp"
#include "local/failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::local {
namespace {

constexpr unsigned long fuse_magic = 0x65735546;

std::string default_directory() { return "/var/tmp/holdfast-" + std::to_string(::geteuid()); }

// It need not be there yet, and is no link when it is; what leads to it may be one (/var/tmp to /tmp).
std::string without_links(const std::string& directory) {
  const std::filesystem::path path{directory};
  std::error_code ec;
  const auto parent = std::filesystem::canonical(path.parent_path(), ec);
  return ec ? directory : (parent / path.filename()).string();
}

// A service with PrivateTmp= would have a server that only it knows, and locks that are nobody else's.
void check_is_the_machines(const std::string& directory) {
  std::ostringstream mounts;
  mounts << std::ifstream{"/proc/self/mountinfo"}.rdbuf();
  if (!is_private_to_a_unit(mounts.str(), without_links(directory))) return;
  fail(directory,
       "This service has a /var/tmp of its own (systemd's PrivateTmp=), so its locks would be no others'; name a "
       "directory that all of them see with HOLDFAST_LOCAL_DIR, as others who want the same locks do.");
}

// An argument is read where it was written; a variable comes with a process wherever that goes, and a relative one
// would name another server, with other locks, in each directory that it goes to.
std::string from_environment() {
  const char* named = std::getenv("HOLDFAST_LOCAL_DIR");
  if (named == nullptr) return default_directory();
  std::string path{named};
  if (path.empty()) {
    fail("HOLDFAST_LOCAL_DIR",
         "It is set and empty, so that which locks were meant cannot be told; name a directory with its whole path, "
         "or unset it.");
  }
  if (path.front() != '/') {
    fail("HOLDFAST_LOCAL_DIR=" + path,
         "It is relative, so that each working directory would have locks of its own; name the directory with its "
         "whole path.");
  }
  return path;
}

std::string path_of(std::string_view argument) {
  const std::string path = argument.empty() ? from_environment() : std::string{argument};
  if (path.find('\0') != std::string::npos) fail(argument, "A directory name cannot contain a zero byte.");
  return absolute(path);
}

void check_length(const place& where) {
  const auto limit = sizeof(sockaddr_un::sun_path) - 1;
  const auto length = where.socket().size();
  if (length <= limit) return;
  fail(where.directory, "The path of its socket would have " + std::to_string(length) + " bytes and Linux allows " +
                            std::to_string(limit) + "; name a directory with a shorter path (HOLDFAST_LOCAL_DIR).");
}

// A line of /proc/self/mountinfo.
struct mount {
  std::string device{};  // "254:1"
  std::string root{};    // Which of its directories is seen at `point`.
  std::string point{};
  std::string type{};
};

mount mount_of(const std::string& line) {
  std::istringstream words{line};
  std::string id, parent, word;
  mount one;
  words >> id >> parent >> one.device >> one.root >> one.point;
  while (words >> word && word != "-") {
  }
  words >> one.type;
  return one;
}

// The type of the mount with this device number; empty if it cannot be told.
std::string mount_type(dev_t device) {
  const auto wanted = std::to_string(gnu_dev_major(device)) + ":" + std::to_string(gnu_dev_minor(device));
  std::ifstream mounts{"/proc/self/mountinfo"};
  for (std::string line; std::getline(mounts, line);)
    if (const auto one = mount_of(line); one.device == wanted) return one.type;
  return {};
}

bool in_group(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  return count > 0 && std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
}

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777u));
  return text.data();
}

void check_owner_and_mode(place& where, const struct stat& seen, bool named, aim what_for) {
  const mode_t mode = seen.st_mode & 07777u;
  if ((mode & 0007u) == 0 && (mode & 0070u) != 0 && named) {
    if (mode != 02770u) {  // Nor sticky: what one member has left could not be taken over by the next.
      fail(where.directory, "Its mode is " + octal(mode) + "; it must be 2770 to be shared with its group, or 0700.");
    }
    if (!in_group(seen.st_gid) && ::geteuid() != 0) {
      fail(where.directory,
           "It is shared with group " + std::to_string(seen.st_gid) + ", and you are not a member of that.");
    }
    where.shared = true;
    return;
  }
  if (seen.st_uid != ::geteuid()) {
    fail(where.directory,
         "It belongs to user " + std::to_string(seen.st_uid) + " and not to you (user " + std::to_string(::geteuid()) +
             (what_for == aim::make ? "); name another directory with HOLDFAST_LOCAL_DIR." : "), as its server does."));
  }
  if ((mode & 0077u) != 0) {
    // No advice to change it: it may be the system's, and root may ask.
    fail(where.directory,
         "Its mode is " + octal(mode) + ", so that others can reach the locks in it; it must be 0700" +
             (named ? ", or 2770 to be shared with its group" : "") +
             (what_for == aim::make ? ". Name a directory of your own; one that is not there yet is made."
                                    : ". Name the directory that the server was started with."));
  }
}

// Looks at the directory through a descriptor, so that what is checked is one thing and not two lookups of a name.
place look(std::string_view argument, aim what_for) {
  place where;
  where.directory = path_of(argument);
  check_length(where);
  if (argument.empty() && where.directory == default_directory()) check_is_the_machines(where.directory);
  const descriptor directory{::open(where.directory.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  if (!directory.is_open()) {
    if (errno == ENOENT) return where;
    fail_with_errno(where.directory, "It cannot be opened.", errno);
  }
  struct stat seen {};
  if (::fstat(directory.get(), &seen) != 0) fail_with_errno(where.directory, "It cannot be examined.", errno);
  if (S_ISLNK(seen.st_mode)) {
    fail(where.directory, "It is a symbolic link, which somebody could turn; name the directory itself.");
  }
  if (!S_ISDIR(seen.st_mode)) fail(where.directory, "It is not a directory.");
  struct statfs file_system {};
  if (::fstatfs(directory.get(), &file_system) != 0) fail_with_errno(where.directory, "It cannot be examined.", errno);
  const auto magic = static_cast<unsigned long>(file_system.f_type) & 0xFFFFFFFFul;
  if (is_network_file_system(magic, magic == fuse_magic ? mount_type(seen.st_dev) : "")) {
    fail(where.directory,
         "It is on a network file system, where each machine would run a server of its own over the same files; "
         "name a directory on a local disk with HOLDFAST_LOCAL_DIR.");
  }
  check_owner_and_mode(where, seen, !argument.empty(), what_for);
  where.owner = seen.st_uid;
  where.group = seen.st_gid;
  where.exists = true;
  return where;
}

}  // namespace

std::string absolute(std::string_view directory) {
  std::error_code ec;
  auto path = std::filesystem::absolute(directory, ec).lexically_normal().string();
  if (ec)
    fail(directory,
         "Where that is cannot be told, because the current directory cannot: it may have been removed. "
         "Name the whole path.",
         ec.message());
  // With a slash at its end a symlink would be followed before we could see it.
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool is_private_to_a_unit(std::string_view mounts, std::string_view directory) {
  std::istringstream lines{std::string{mounts}};
  std::set<std::string> of_units;  // The devices of PrivateTmp=disconnected.
  mount nearest;
  for (std::string line; std::getline(lines, line);) {
    auto next = mount_of(line);
    if (next.point.ends_with("/systemd/unit-private-tmp")) of_units.insert(next.device);
    const auto& point = next.point;
    if (point.size() < nearest.point.size() || !directory.starts_with(point)) continue;
    if (point.size() < directory.size() && point != "/" && directory[point.size()] != '/') continue;
    nearest = std::move(next);  // Of two at one point the later one covers the other.
  }
  return nearest.root.find("/systemd-private-") != std::string::npos ||
         (nearest.type == "tmpfs" && (nearest.root == "/var-tmp" || of_units.contains(nearest.device)));
}

bool is_network_file_system(unsigned long magic, std::string_view mount_type) {
  // From statfs(2) and linux/magic.h; 9p and virtiofs share a host's disk with other guests.
  constexpr std::array networks{0x6969ul,       // NFS
                                0x517Bul,       // SMB
                                0xFF534D42ul,   // CIFS
                                0xFE534D42ul,   // SMB2 and 3
                                0x01021997ul,   // 9p
                                0x564Cul,       // NCP
                                0x5346414Ful,   // AFS
                                0x6B414653ul,   // kernel AFS
                                0x73757245ul,   // Coda
                                0x00C36400ul,   // Ceph
                                0x0BD00BD0ul,   // Lustre
                                0x47504653ul,   // GPFS
                                0x19830326ul,   // BeeGFS
                                0x01161970ul,   // GFS2
                                0x7461636Ful,   // OCFS2
                                0xAAD7AAEAul,   // PanFS
                                0x786F4256ul,   // VirtualBox shared folder
                                0xBACBACBCul};  // VMware shared folder
  if (magic == fuse_magic) {
    return mount_type != "fuseblk" && mount_type != "fuse.fuse-overlayfs";
  }
  return std::find(networks.begin(), networks.end(), magic) != networks.end();
}

// mkdir with the mode is one step: there is no instant at which others could enter.
bool make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return false;
  restore_owners_rights(path);
  return true;
}

// Where others may exchange it meanwhile, it is another one of ours at worst, closed to all others, and only our own
// rights are added. Through /proc, because fchmod(2) does not take what was opened without a right to read it. The
// umask itself is not ours to change: it is that of all threads.
void restore_owners_rights(const std::string& path) {
  constexpr mode_t owners = 0700, others = 0077;
  const descriptor made{::open(path.c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)};
  struct stat seen {};
  if (!made.is_open() || ::fstat(made.get(), &seen) != 0) fail_with_errno(path, "It cannot be examined.", errno);
  if ((seen.st_mode & owners) == owners || (seen.st_mode & others) != 0 || seen.st_uid != ::geteuid()) return;
  const auto opened = "/proc/self/fd/" + std::to_string(made.get());
  if (::chmod(opened.c_str(), (seen.st_mode & 07777u) | owners) != 0)
    fail_with_errno(
        path,
        "Our umask has taken our own rights from it, and they cannot be given back; with umask 077 it can be made.",
        errno);
}

place find(std::string_view argument) { return look(argument, aim::find); }

place find_or_make(std::string_view argument) {
  auto where = look(argument, aim::make);
  if (where.exists) return where;
  // If another process made it first, look again: it is checked like any other.
  if (!make_directory(where.directory) && errno != EEXIST) {
    fail_with_errno(where.directory, "It cannot be made; name a directory that you may write with HOLDFAST_LOCAL_DIR.",
                    errno);
  }
  where = look(argument, aim::make);
  if (!where.exists) fail(where.directory, "It was removed while we looked at it.");
  return where;
}

}  // namespace holdfast::local
