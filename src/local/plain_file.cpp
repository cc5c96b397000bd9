// SPDX-License-Identifier: Apache-2.0
#include "local/plain_file.hpp"

#include "local/failure.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast::local {

bool is_plain(const struct stat& seen) { return S_ISREG(seen.st_mode) && seen.st_nlink <= 1; }

void refuse_as_not_plain(const std::string& path) {
  fail(path,
       "It is no plain file of a server's: it would lead elsewhere, or keep waiting who opens it. Somebody who may "
       "write in its directory has put it there: look at it, and remove it.");
}

descriptor open_plain(const std::string& path, int flags, mode_t mode) {
  return open_plain_in(AT_FDCWD, path, path, flags, mode);
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
