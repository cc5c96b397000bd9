// SPDX-License-Identifier: Apache-2.0
#include "jobs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace holdfast::sim {

namespace {

// What a job says now and then, and when it has found something.
struct news {
  std::uint64_t at;  // The seed that it plays next; or that failed.
  std::uint64_t has_failed;
  statistics since;
};

struct job {
  pid_t process = -1;
  int pipe = -1;
  std::uint64_t at = 0;
  bool is_over = false;
};

bool write_all(int to, const news& what) {
  const auto* at = reinterpret_cast<const char*>(&what);
  for (std::size_t left = sizeof what; left > 0;) {
    const auto count = ::write(to, at, left);
    if (count <= 0) return false;
    at += count;
    left -= static_cast<std::size_t>(count);
  }
  return true;
}

bool read_all(int from, news& into) {
  auto* at = reinterpret_cast<char*>(&into);
  for (std::size_t left = sizeof into; left > 0;) {
    const auto count = ::read(from, at, left);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    left -= static_cast<std::size_t>(count);
  }
  return true;
}

[[noreturn]] void work(const range& seeds, std::uint64_t step, int to, const limits& within, const canary* planted) {
  constexpr std::uint64_t portion = 64;
  stage here{planted};
  auto since = std::make_unique<news>();
  std::uint64_t in_portion = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed += step) {
    if (in_portion == 0) {
      since->at = seed;
      if (!write_all(to, *since)) _exit(0);
      *since = news{};
    }
    const bool is_good = here.play(seed, within, since->since).violations.empty();
    if (!is_good || ++in_portion == portion) {
      since->at = seed;
      since->has_failed = is_good ? 0 : 1;
      if (!write_all(to, *since) || !is_good) _exit(0);
      *since = news{};
      in_portion = 0;
    }
  }
  since->at = seeds.first + seeds.count;
  write_all(to, *since);
  _exit(0);
}

job start(const range& seeds, int number, int jobs, const limits& within, const canary* planted) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  const range own{seeds.first + static_cast<std::uint64_t>(number),
                  seeds.count - std::min<std::uint64_t>(seeds.count, static_cast<std::uint64_t>(number))};
  std::fflush(stdout);
  const pid_t process = ::fork();
  if (process < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (process == 0) {
    ::close(ends[0]);
    work(own, static_cast<std::uint64_t>(jobs), ends[1], within, planted);
  }
  ::close(ends[1]);
  return {process, ends[0], own.first};
}

// Of several in one round the smallest seed counts, whichever is heard first.
void note_failure(jobs_result& result, std::uint64_t seed, bool is_crash, const range& seeds) {
  if (result.failed && *result.failed <= seed) return;
  result.failed = seed;
  result.has_crashed = is_crash;
  result.tried = seed - seeds.first + 1;
}

// Takes in one piece of news. A job that ends without a last word has crashed.
void hear(job& from, jobs_result& result, const range& seeds) {
  const auto what = std::make_unique<news>();
  if (!read_all(from.pipe, *what)) {
    from.is_over = true;
    int status = 0;
    ::waitpid(from.process, &status, 0);
    ::close(from.pipe);
    from.process = -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) note_failure(result, from.at, true, seeds);
    return;
  }
  from.at = what->at;
  result.total.add(what->since);
  if (what->has_failed) note_failure(result, what->at, false, seeds);
}

}  // namespace

jobs_result play_all(const range& seeds, int jobs, const limits& within, const canary* planted,
                     const std::function<void(const statistics&)>& on_progress) {
  jobs_result result;
  std::vector<job> all;
  for (int i = 0; i < jobs; ++i) all.push_back(start(seeds, i, jobs, within, planted));
  const auto works = [](const job& j) { return !j.is_over; };
  while (!result.failed && std::any_of(all.begin(), all.end(), works)) {
    fd_set ready;
    FD_ZERO(&ready);
    int most = 0;
    for (const auto& j : all) {
      if (j.is_over) continue;
      FD_SET(j.pipe, &ready);
      most = std::max(most, j.pipe);
    }
    if (::select(most + 1, &ready, nullptr, nullptr, nullptr) < 0) continue;
    for (auto& j : all) {
      if (!j.is_over && FD_ISSET(j.pipe, &ready)) hear(j, result, seeds);
    }
    on_progress(result.total);
  }
  for (const auto& j : all) {
    if (j.process < 0) continue;
    if (result.failed) ::kill(j.process, SIGKILL);
    ::waitpid(j.process, nullptr, 0);
    ::close(j.pipe);
  }
  return result;
}

}  // namespace holdfast::sim
