// SPDX-License-Identifier: Apache-2.0
#include "local/opened_directory.hpp"

#include "local/failure.hpp"
#include "local/plain_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace holdfast::local {
namespace {

constexpr mode_t shared_file_mode = 0660;
constexpr mode_t shared_directory_mode = 02770;
constexpr int as_directory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

[[noreturn]] void fail_as_exchanged(const std::string& path) {
  fail(path, "Somebody who may write in its directory has put another one in its place.");
}

struct stat seen_of(const descriptor& directory, const std::string& path) {
  struct stat seen {};
  if (::fstat(directory.get(), &seen) != 0) fail_with_errno(path, "It cannot be examined.", errno);
  return seen;
}

struct close_entries {
  void operator()(DIR* entries) const noexcept { ::closedir(entries); }
};

// nullopt, with errno, if they cannot be read.
std::optional<std::vector<std::string>> names_in(const descriptor& directory) {
  descriptor again{::openat(directory.get(), ".", as_directory)};  // With a position of its own.
  const std::unique_ptr<DIR, close_entries> entries{again.is_open() ? ::fdopendir(again.get()) : nullptr};
  if (!entries) return std::nullopt;
  again.release();
  std::vector<std::string> names;
  errno = 0;
  while (const auto* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  return errno == 0 ? std::optional{std::move(names)} : std::nullopt;
}

}  // namespace

void fail_to_adopt(const std::string& path, int error_number) {
  fail_with_errno(path, "The file of the former server, another user's, cannot be taken over.", error_number);
}

opened_directory::opened_directory(int in, const std::string& name, std::string path)
    : path_{std::move(path)}, fd_{::openat(in, name.c_str(), as_directory)} {
  if (fd_.is_open()) return;
  if (errno == ENOTDIR || errno == ELOOP) refuse_as_not_plain(path_);
  fail_to_adopt(path_, errno);
}

opened_directory::opened_directory(const place& where) : opened_directory{AT_FDCWD, where.directory, where.directory} {
  const auto seen = seen_of(fd_, path_);
  if (seen.st_uid != where.owner || seen.st_gid != where.group) fail_as_exchanged(path_);
}

opened_directory opened_directory::directory(const std::string& name) const { return {fd_.get(), name, path_of(name)}; }

std::string opened_directory::path_of(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

uid_t opened_directory::owner() const { return seen_of(fd_, path_).st_uid; }

std::optional<struct stat> opened_directory::look_at(const std::string& name) const {
  struct stat seen {};
  if (::fstatat(fd_.get(), name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) == 0) return seen;
  if (errno == ENOENT) return std::nullopt;
  fail_with_errno(path_of(name), "It cannot be examined.", errno);
}

std::vector<std::string> opened_directory::names() const {
  auto found = names_in(fd_);
  if (!found) fail_to_adopt(path_, errno);
  return std::move(*found);
}

descriptor opened_directory::file(const std::string& name) const {
  auto opened = open_plain_in(fd_.get(), name, path_of(name), O_RDONLY);
  if (!opened.is_open()) fail_to_adopt(path_of(name), errno);
  return opened;
}

descriptor opened_directory::make_file(const std::string& name) const {
  constexpr int as_new = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  descriptor file{::openat(fd_.get(), name.c_str(), as_new, shared_file_mode)};
  if (!file.is_open() || ::fchmod(file.get(), shared_file_mode) != 0) fail_to_adopt(path_of(name), errno);
  return file;
}

// What is opened is what was made, or as good: it is its maker's, and has nothing in it.
opened_directory opened_directory::make_directory(const std::string& name, uid_t user) const {
  if (::mkdirat(fd_.get(), name.c_str(), 0700) != 0) fail_to_adopt(path_of(name), errno);
  auto made = directory(name);
  if (made.owner() != user || !made.names().empty()) fail_as_exchanged(made.path_);
  made.open_to_members(user);
  return made;
}

void opened_directory::open_to_members(uid_t user) const {
  if (owner() != user) fail_to_adopt(path_, EPERM);
  if (::fchmod(fd_.get(), shared_directory_mode) != 0) fail_to_adopt(path_, errno);
}

bool opened_directory::is_open_to_members() const {
  return (seen_of(fd_, path_).st_mode & 07777u) == shared_directory_mode;
}

void opened_directory::rename(const std::string& from, const std::string& to) const {
  if (::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) != 0) fail_to_adopt(path_of(to), errno);
}

void opened_directory::remove(const std::string& name) const {
  if (const descriptor inner{::openat(fd_.get(), name.c_str(), as_directory)}; inner.is_open()) {
    const auto files = names_in(inner);
    if (files)
      for (const auto& file : *files) ::unlinkat(inner.get(), file.c_str(), 0);
  }
  if (::unlinkat(fd_.get(), name.c_str(), 0) != 0) ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR);
}

}  // namespace holdfast::local
