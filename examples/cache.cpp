// SPDX-License-Identifier: Apache-2.0
// A cache that all may read and one rebuilds. Whoever finds it stale stands in line for a moment; the first one
// rebuilds it, and the others look again behind him instead of doing the work once more.
//
//   HOLDFAST_URI=redis://db1 cache FILE [SECONDS_THAT_IT_IS_FRESH]
#include <holdfast/holdfast.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

bool is_fresh(const fs::path& file, std::chrono::seconds age) {
  std::error_code ec;
  const auto written_at = fs::last_write_time(file, ec);
  return !ec && fs::file_time_type::clock::now() - written_at < age;
}

// A file that is gone when it goes out of scope, unless it was moved away.
struct draft_file {
  fs::path path;
  ~draft_file() {
    std::error_code ec;
    fs::remove(path, ec);
  }
};

// Stands for your work. Written beside and moved, so that a reader never sees half of it.
void rebuild(const fs::path& file, const holdfast::lease& lease) {
  const draft_file draft{file.string() + "." + lease.token().to_string()};
  std::ofstream out{draft.path};
  out << "built under token " << lease.token().to_string() << "\n";
  out.close();  // What is buffered is written here at the latest; a full disk is seen here and not before.
  if (!out) throw std::system_error{errno, std::generic_category(), "cannot write " + draft.path.string()};
  // Throws if the lease ended meanwhile: then somebody else builds it, and ours is not published. Who is suspended
  // between here and the next line comes late, and replaces a newer one: of a cache that is no harm, since the file's
  // time is that of our last write, and it is stale the sooner. Where it is harm, give it a fence: docs/fencing.md.
  lease.check();
  fs::rename(draft.path, file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: cache FILE [SECONDS]\n", stderr), 64;
  const fs::path file = argv[1];
  const std::chrono::seconds age{argc > 2 ? std::atoi(argv[2]) : 60};
  try {
    if (!is_fresh(file, age)) {
      holdfast::client locks;
      const bool had_a_turn = locks.try_synchronize("cache:" + file.filename().string(),
                                                    [&](holdfast::lease& lease) {
                                                      if (is_fresh(file, age))
                                                        return;  // Somebody before us in line has done it.
                                                      rebuild(file, lease);
                                                      std::puts("rebuilt");
                                                    },
                                                    {.ttl = 10s, .wait = 15s});
      if (!had_a_turn) std::puts("stale: whoever rebuilds it is not done yet");
    }
  } catch (const std::exception& e) {               // The lock's trouble or the file's.
    std::fprintf(stderr, "cache: %s\n", e.what());  // A stale answer is better than none, if there is one.
  }
  std::ifstream in{file};
  std::string line;
  while (std::getline(in, line)) std::puts(line.c_str());
  if (in.eof()) return 0;  // All of it; else it could not be opened, or not be read to its end.
  std::fprintf(stderr, "cache: cannot read %s\n", file.c_str());
  return 1;
}
