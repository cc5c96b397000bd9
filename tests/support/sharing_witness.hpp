// SPDX-License-Identifier: Apache-2.0
// As witness.hpp, for what several may hold together: who was inside with whom, and who went before whom.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::test {

// How much one takes: a permit, a reader's part, or all of it.
enum class part : std::int32_t { one = 1, some = 2, all = 3 };

// From asking until standing in line: the first time a process connects for it and subscribes.
struct on_the_way {
  std::chrono::nanoseconds first = std::chrono::milliseconds{1500};
  std::chrono::nanoseconds later = std::chrono::milliseconds{500};
};

class sharing_witness {
public:
  sharing_witness(const std::string& path, part mine);
  ~sharing_witness();
  sharing_witness(const sharing_witness&) = delete;
  sharing_witness& operator=(const sharing_witness&) = delete;

  void ask();  // Just before the acquire.
  void enter(std::uint64_t token);
  void exit(std::uint64_t token);
  // Said by a test of a process that it has killed and reaped, before its lease can end.
  void is_dead(int pid);

private:
  enum class what : std::int32_t { ask = 1, enter = 2, exit = 3 };
  struct record {
    what happened{};
    part took{};
    std::int32_t who = 0;
    std::uint64_t token = 0;
    std::int64_t boottime_ns = 0;
  };
  friend struct sharing_verdict judge_sharing(const std::string&, int, const on_the_way&);

  void write(what happened, int who, std::uint64_t token);

  part mine_;
  int fd_;
};

struct sharing_verdict {
  int holds = 0;
  int most_inside = 0;
  int intrusions = 0;   // Somebody entered whom there was no room for: beside a writer, or beyond the size.
  int overtakings = 0;  // A reader entered before a writer that stood in line before it asked, and was there all along.
  int writers = 0;      // Holds of writers among them.
  std::string first_offence{};
};

// `size`: how many may be inside, of readers or permits. A writer must be alone.
sharing_verdict judge_sharing(const std::string& path, int size, const on_the_way& most = {});

}  // namespace holdfast::test
