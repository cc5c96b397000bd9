// SPDX-License-Identifier: Apache-2.0
// Another program in the place of redis-server, for tests. Shared by the test files of this room.
#pragma once

#include "local/scratch_directory.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace holdfast::local {

// As long as this lives.
class other_server {
public:
  other_server(const scratch_directory& scratch, const std::string& text) : path_{std::getenv("PATH")} {
    const auto program = scratch.path() + "/redis-server";
    std::ofstream{program} << text;
    ::chmod(program.c_str(), 0755);
    ::setenv("PATH", (scratch.path() + ":" + path_).c_str(), 1);
  }
  ~other_server() { ::setenv("PATH", path_.c_str(), 1); }
  other_server(const other_server&) = delete;
  other_server& operator=(const other_server&) = delete;

private:
  std::string path_;
};

}  // namespace holdfast::local
