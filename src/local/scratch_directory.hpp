// SPDX-License-Identifier: Apache-2.0
// A directory for one test, gone with it; its local server, if a test left one, is stopped first. Shared by the
// test files of this room.
#pragma once

#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace holdfast::local {

class scratch_directory {
public:
  scratch_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-local-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~scratch_directory() {
    std::error_code ec;
    try {
      stop_local(server());
    } catch (const error&) {  // A test that made the directory unfit for a server has none to stop.
    }
    std::filesystem::remove_all(path_, ec);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  const std::string& path() const { return path_; }
  std::string server() const { return path_ + "/server"; }

private:
  std::string path_;
};

}  // namespace holdfast::local
