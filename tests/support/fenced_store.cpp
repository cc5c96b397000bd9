// SPDX-License-Identifier: Apache-2.0
#include "support/fenced_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace holdfast::test {

// `how` gets the content and says whether it accepted.
template <class Change>
bool fenced_store::change(Change how) {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::flock(fd, LOCK_EX) != 0) throw std::runtime_error("no fenced store at " + path_);
  content now;
  [[maybe_unused]] auto moved = ::pread(fd, &now, sizeof now, 0);
  const bool accepted = how(now);
  if (!accepted) ++now.refused;
  moved = ::pwrite(fd, &now, sizeof now, 0);
  ::close(fd);
  return accepted;
}

bool fenced_store::raise(std::uint64_t token) {
  return change([&](content& now) {
    if (token < now.largest) return false;
    now.largest = token;
    return true;
  });
}

std::optional<std::int64_t> fenced_store::read(std::uint64_t token) {
  std::optional<std::int64_t> result;
  change([&](content& now) {
    if (token < now.largest) return false;
    result = now.value;
    return true;
  });
  return result;
}

bool fenced_store::write(std::uint64_t token, std::int64_t value) {
  return change([&](content& now) {
    if (token < now.largest) return false;
    now.largest = token;
    now.value = value;
    return true;
  });
}

std::int64_t fenced_store::value() {
  std::int64_t result = 0;
  change([&](content& now) {
    result = now.value;
    return true;
  });
  return result;
}

std::int64_t fenced_store::refused() {
  std::int64_t result = 0;
  change([&](content& now) {
    result = now.refused;
    return true;
  });
  return result;
}

}  // namespace holdfast::test
