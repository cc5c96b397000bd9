// SPDX-License-Identifier: Apache-2.0
#include "local/whole_file.hpp"

#include "local/descriptor.hpp"
#include "local/failure.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::local {

void write_whole_file(const std::string& path, const std::string& text, mode_t mode, const char* failure) {
  const auto fresh = path + ".new";
  ::unlink(fresh.c_str());  // In a shared directory it may be another's, whose mode is anything.
  descriptor file{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
  if (!file.is_open()) fail_with_errno(fresh, failure, errno);
  ::fchmod(file.get(), mode);  // Against our umask.
  const auto written = ::write(file.get(), text.data(), text.size());
  if (written >= 0 && written != static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size())) fail_with_errno(fresh, failure, errno);
  file.close();
  if (::rename(fresh.c_str(), path.c_str()) != 0) fail_with_errno(fresh, failure, errno);
}

}  // namespace holdfast::local
