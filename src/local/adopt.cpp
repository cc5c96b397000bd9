// SPDX-License-Identifier: Apache-2.0
#include "local/adopt.hpp"

#include "local/descriptor.hpp"
#include "local/failure.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::local {
namespace {

namespace fs = std::filesystem;

constexpr mode_t file_mode = 0660;

[[noreturn]] void refuse(const std::string& path) {
  fail(path,
       "It is no plain file of a server's, and redis-server would follow where it leads. Somebody of the directory's "
       "group has put it there: look at it, and remove it.");
}

[[noreturn]] void fail_to_adopt(const std::string& path, int error_number) {
  fail_with_errno(path, "The file of the former server, another user's, cannot be taken over.", error_number);
}

// Nothing is followed: what is looked at is what would be copied.
struct stat looked_at(const std::string& path) {
  struct stat seen {};
  if (::lstat(path.c_str(), &seen) != 0) fail_with_errno(path, "It cannot be examined.", errno);
  return seen;
}

bool is_plain(const struct stat& seen) { return S_ISREG(seen.st_mode) && seen.st_nlink == 1; }

bool is_there(const std::string& path) {
  struct stat seen {};
  return ::lstat(path.c_str(), &seen) == 0;
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code ec;
  for (auto entry = fs::directory_iterator{directory, ec}; !ec && entry != fs::directory_iterator{};
       entry.increment(ec)) {
    found.push_back(entry->path().filename().string());
  }
  if (ec) fail_to_adopt(directory, ec.value());
  return found;
}

void copy(const std::string& from, const std::string& to, uid_t user) {
  const descriptor in{::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!in.is_open()) fail_to_adopt(from, errno);
  struct stat seen {};
  if (::fstat(in.get(), &seen) != 0) fail_to_adopt(from, errno);
  if (!is_plain(seen)) refuse(from);
  const descriptor out{::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode)};
  if (!out.is_open()) fail_to_adopt(to, errno);
  for (off_t left = seen.st_size; left > 0;) {
    const auto sent = ::sendfile(out.get(), in.get(), nullptr, static_cast<std::size_t>(left));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail_to_adopt(to, sent < 0 ? errno : EIO);
    left -= sent;
  }
  if (::fchmod(out.get(), file_mode) != 0) fail_to_adopt(to, errno);
  if (user != ::geteuid() && ::fchown(out.get(), user, static_cast<gid_t>(-1)) != 0) fail_to_adopt(to, errno);
}

void put_in_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_to_adopt(to, errno);
}

// Redis 6.2 has one file.
void adopt_file(const std::string& file, uid_t user) {
  if (!is_there(file)) return;
  const auto seen = looked_at(file);
  if (!is_plain(seen)) refuse(file);
  if (seen.st_uid == user) return;
  const auto made = file + ".new";
  std::error_code ec;
  fs::remove_all(made, ec);
  copy(file, made, user);
  put_in_place(made, file);
}

// Redis 7 has a directory of them.
void adopt_directory(const std::string& directory, uid_t user) {
  const auto made = directory + ".new";
  const auto old = directory + ".old";
  if (!is_there(directory)) {
    // Whoever put the copy there was ended between the two steps of that.
    if (!is_there(old)) return;
    put_in_place(old, directory);
  }
  const auto seen = looked_at(directory);
  if (!S_ISDIR(seen.st_mode)) refuse(directory);
  bool is_all_its = seen.st_uid == user;
  for (const auto& name : entries_of(directory)) {
    const auto path = fmt::format("{}/{}", directory, name);
    const auto file = looked_at(path);
    if (!is_plain(file)) refuse(path);
    is_all_its = is_all_its && file.st_uid == user;
  }
  if (is_all_its) return;
  std::error_code ec;
  fs::remove_all(made, ec);
  fs::remove_all(old, ec);
  if (::mkdir(made.c_str(), 0770) != 0) fail_to_adopt(made, errno);
  for (const auto& name : entries_of(directory)) {
    copy(fmt::format("{}/{}", directory, name), fmt::format("{}/{}", made, name), user);
  }
  if (user != ::geteuid() && ::lchown(made.c_str(), user, static_cast<gid_t>(-1)) != 0) fail_to_adopt(made, errno);
  put_in_place(directory, old);
  put_in_place(made, directory);
  fs::remove_all(old, ec);  // What cannot be removed is in nobody's way.
}

}  // namespace

void adopt_files(const place& where, uid_t user) {
  adopt_directory(where.append_only_directory(), user);
  adopt_file(where.append_only_file(), user);
}

}  // namespace holdfast::local
