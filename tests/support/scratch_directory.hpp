// SPDX-License-Identifier: Apache-2.0
// A directory that is gone with its test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace holdfast::test {

class scratch_directory {
public:
  scratch_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hf-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~scratch_directory() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

}  // namespace holdfast::test
