// SPDX-License-Identifier: Apache-2.0
// A pool of workers on any number of machines, of which only so many may use a scarce thing at a time: a licence, a
// database's connections, an upstream that throttles. Large jobs take several permits and are not starved by small
// ones.
//
//   HOLDFAST_URI=redis://db1 worker_pool PERMITS WORKERS JOBS
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// One job: waits for its permits, works, and gives them back. Throws if it cannot be said that they were held all the
// time: a process that is stopped for longer than the ttl, say, goes on while others have its permits.
void run(holdfast::semaphore& uploads, int job, int weight) {
  auto lease = uploads.acquire({.ttl = 10s, .wait = 30s, .permits = weight});
  std::this_thread::sleep_for(10ms);  // Stands for your work. If it takes long, look at lease.lost() between its steps.
  lease.check();                      // Before what cannot be undone: throws the reason if the lease has ended.
  std::printf("job %d under %d permit(s), token %s\n", job, weight, lease.token().to_string().c_str());
  holdfast::error_detail why;
  const auto outcome = lease.release(why);
  if (outcome == holdfast::release_outcome::already_lost) throw std::runtime_error{"the permits were lost at its end"};
  if (outcome == holdfast::release_outcome::unknown) throw holdfast::error{holdfast::errc::reply_lost, why};
}

}  // namespace

int main(int argc, char** argv) {
  const int permits = argc > 1 ? std::atoi(argv[1]) : 3;
  const int workers = argc > 2 ? std::atoi(argv[2]) : 8;
  const int jobs = argc > 3 ? std::atoi(argv[3]) : 40;
  try {
    holdfast::client locks;
    holdfast::semaphore uploads{locks, "example:uploads", permits};
    std::atomic<int> next{0};
    std::atomic<bool> failed{false};
    const auto work = [&] {
      for (int job = next++; job < jobs && !failed; job = next++) {
        try {
          run(uploads, job, job % 10 == 9 ? permits : 1);  // Each tenth job wants it all.
        } catch (const std::exception& e) {                // The message has the server's words.
          std::fprintf(stderr, "worker_pool: job %d: %s\n", job, e.what());
          failed = true;  // The others end the jobs that they have, and begin no more.
        }
      }
    };
    std::vector<std::jthread> pool;  // Joined at its end, also by an exception.
    try {
      for (int w = 0; w < workers; ++w) pool.emplace_back(work);
    } catch (...) {  // The system has no thread left for one.
      failed = true;
      throw;
    }
    pool.clear();
    return failed ? 1 : 0;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "worker_pool: %s\n", e.what()), 1;
  }
}
