// SPDX-License-Identifier: Apache-2.0
#include "local/plain_file.hpp"

#include "local/failure.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace holdfast::local {
namespace {

std::string directory_of(const std::string& path) { return std::filesystem::path{path}.parent_path().string(); }

// Not open where something is there by now, or where the file system has no files without a name (O_TMPFILE). Not by
// another name first: with two it would be refused to others, and by rename(2) take the place of one that is locked.
descriptor make_plain(const std::string& path, int flags, mode_t mode) {
  descriptor file{::open(directory_of(path).c_str(), flags | O_TMPFILE | O_CLOEXEC, mode)};
  const auto opened = "/proc/self/fd/" + std::to_string(file.get());
  const bool is_made = file.is_open() && ::fchmod(file.get(), mode) == 0 &&
                       ::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  if (!is_made) file.close();
  return file;
}

descriptor open_or_make(const std::string& path, int flags, mode_t mode) {
  if (auto there = open_plain(path, flags); there.is_open() || errno != ENOENT) return there;
  if (auto made = make_plain(path, flags, mode); made.is_open()) return made;
  return open_plain(path, flags | O_CREAT, mode);
}

// Refused to all but its owner. The group first: the mode is for no other.
void give_rights(const descriptor& file, const std::string& path, mode_t mode) {
  struct stat its {};
  struct stat around {};
  const bool is_for_group = (mode & S_IRWXG) != 0;
  if (::fstat(file.get(), &its) != 0 || ::stat(directory_of(path).c_str(), &around) != 0) return;
  if (is_for_group && its.st_gid != around.st_gid && ::fchown(file.get(), ~uid_t{0}, around.st_gid) != 0) return;
  ::fchmod(file.get(), mode);
}

}  // namespace

bool is_plain(const struct stat& seen) { return S_ISREG(seen.st_mode) && seen.st_nlink <= 1; }

void refuse_as_not_plain(const std::string& path) {
  fail(path,
       "It is no plain file of a server's: it would lead elsewhere, or keep waiting who opens it. Somebody who may "
       "write in its directory has put it there: look at it, and remove it.");
}

descriptor open_plain(const std::string& path, int flags, mode_t mode) {
  return open_plain_in(AT_FDCWD, path, path, flags, mode);
}

descriptor open_or_make_plain(const std::string& path, int flags, mode_t mode) {
  auto file = open_or_make(path, flags, mode);
  if (file.is_open()) give_rights(file, path, mode);
  return file;
}

descriptor open_plain_in(int directory, const std::string& name, const std::string& path, int flags, mode_t mode) {
  descriptor file{::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode)};
  // A link; a FIFO that nobody reads, or a socket.
  if (!file.is_open() && (errno == ELOOP || errno == ENXIO)) refuse_as_not_plain(path);
  if (!file.is_open()) return file;
  struct stat seen {};
  if (::fstat(file.get(), &seen) != 0) {
    file.close();
    return file;
  }
  if (!is_plain(seen)) refuse_as_not_plain(path);
  ::fcntl(file.get(), F_SETFL, flags);  // The server gets its log without O_NONBLOCK.
  return file;
}

std::optional<std::string> rest_of(const descriptor& file) {
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    const auto count = ::read(file.get(), bytes.data(), bytes.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return std::nullopt;
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

std::string text_or_nothing(const std::string& path) {
  try {
    const auto file = open_plain(path, O_RDONLY);
    return file.is_open() ? rest_of(file).value_or("") : "";
  } catch (const error&) {
    return {};
  }
}

}  // namespace holdfast::local
