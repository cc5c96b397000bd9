// SPDX-License-Identifier: Apache-2.0
// A job that cron starts on every machine and that one of them does. The lock sees to it that no two do it at the same
// time; that it is done once needs a record as well, because behind the first machine the lock is free again. Here the
// report is its own record: its name says of which night it is, and who gets the lock looks for it before anything
// else. So all may wait: the next one takes over if the first one dies, and otherwise sees that there is nothing left
// to do.
//
// REPORT lies where all machines see it. In a database the record is a row with the night as its unique key, written in
// the transaction that writes the data.
//
//   0 3 * * *  HOLDFAST_URI=redis://db1 nightly /srv/reports/$(date -u +\%F) [STEPS]
#include <fcntl.h>
#include <unistd.h>
#include <holdfast/holdfast.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

// A file that is gone when it goes out of scope.
struct draft_file {
  fs::path path;
  ~draft_file() {
    std::error_code ec;
    fs::remove(path, ec);
  }
};

enum class job { finished, stopped };

// Stands for your work: small steps, and a look at `lost` between them. Nobody sees anything of it until it is
// published.
job make_report(const fs::path& draft, int steps, const std::stop_token& lost) {
  std::ofstream out{draft};
  for (int step = 1; step <= steps; ++step) {
    if (lost.stop_requested()) return job::stopped;
    out << "step " << step << " of " << steps << "\n";
    std::this_thread::sleep_for(10ms);
  }
  out.close();  // What is buffered is written here at the latest; a full disk is seen here and not before.
  if (!out) throw std::system_error{errno, std::generic_category(), "cannot write " + draft.string()};
  return job::finished;
}

// Its name must not be there before it is: behind a power cut an empty report would count as done.
void flush_to_disk(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_done = fd >= 0 && ::fsync(fd) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!is_done) throw std::system_error{why, std::generic_category(), "cannot write " + file.string()};
}

// False if the night has its report. To look and to publish are one step of the file system: who is suspended between
// its last look at the lease and here comes late, and then it does not publish a second time.
bool publish(const fs::path& draft, const fs::path& report) {
  std::error_code ec;
  fs::create_hard_link(draft, report, ec);
  if (ec && ec != std::errc::file_exists) throw std::system_error{ec, "cannot publish " + report.string()};
  return !ec;
}

int run_under(holdfast::lease& lease, const fs::path& report, int steps) {
  const auto token = lease.token().to_string();
  if (fs::exists(report)) return std::puts("done already"), 0;
  // Called on the client's callback thread, ttl/6 before the end, when renewals have been failing: time to warn.
  std::stop_callback warn{lease.at_risk(), [] { std::fputs("nightly: renewals are failing\n", stderr); }};
  const draft_file draft{report.string() + "." + token};
  if (make_report(draft.path, steps, lease.lost()) == job::stopped) {
    std::fprintf(stderr, "nightly: stopped: %s\n", lease.lost_reason().message().c_str());
    return 1;
  }
  flush_to_disk(draft.path);
  lease.check();  // Throws if the lease ended after the last step. Now the result may be published.
  if (!publish(draft.path, report)) return std::puts("done already"), 0;
  std::printf("published under token %s\n", token.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: nightly REPORT [STEPS]\n", stderr), 64;
  const fs::path report = argv[1];
  const int steps = argc > 2 ? std::atoi(argv[2]) : 3;
  try {
    holdfast::client locks;
    // A ttl well above the worst pause, and a wait as long as the job may take.
    return locks.synchronize("nightly:" + report.filename().string(),
                             [&](holdfast::lease& lease) { return run_under(lease, report, steps); },
                             {.ttl = 30s, .wait = 1h});
  } catch (const std::exception& e) {  // The lock's trouble or the file's.
    // That it timed out or is unknown is not "nobody has it": do nothing, and let the next run look again.
    std::fprintf(stderr, "nightly: %s\n", e.what());
    return 1;
  }
}
