// SPDX-License-Identifier: Apache-2.0
#include "own_directory.hpp"

#include "environment.hpp"

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

// Without links and dots, so that /tmp/link/etc is not taken for something of /tmp.
std::string resolved(const fs::path& path) {
  std::error_code ec;
  auto real = fs::canonical(path, ec);
  return ec ? std::string{} : real.string();
}

bool is_inside(std::string_view path, std::string_view above) {
  return above.size() > 1 && path.size() > above.size() + 1 && path.starts_with(above) && path[above.size()] == '/';
}

}  // namespace

bool is_for_own_files(const std::string& directory) {
  const auto real = resolved(directory);
  for (const auto* above : {"HOME", "XDG_RUNTIME_DIR", "TMPDIR"})
    if (const auto path = variable(above); path.starts_with('/') && is_inside(real, resolved(path))) return true;
  for (const auto* above : {"/tmp", "/var/tmp", "/dev/shm"})
    if (is_inside(real, above)) return true;
  return false;
}

std::string without_chmod(const std::string& why) {
  for (const auto* advice : {"; chmod 0700", ": chmod 0700", "; use 2770"})
    if (const auto at = why.find(advice); at != why.npos) return why.substr(0, at) + ".";
  return why;
}

}  // namespace holdfast::cli
