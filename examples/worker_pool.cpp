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
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// Stands for your work; `weight` permits are held meanwhile.
void work(int job, int weight, const holdfast::lease& lease) {
  std::printf("job %d under %d permit(s), token %s\n", job, weight, lease.token().to_string().c_str());
  std::this_thread::sleep_for(10ms);
}

}  // namespace

int main(int argc, char** argv) {
  const int permits = argc > 1 ? std::atoi(argv[1]) : 3;
  const int workers = argc > 2 ? std::atoi(argv[2]) : 8;
  const int jobs = argc > 3 ? std::atoi(argv[3]) : 40;
  try {
    holdfast::client locks;
    holdfast::semaphore uploads{locks, "uploads", permits};
    std::atomic<int> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::thread> pool;
    for (int w = 0; w < workers; ++w) {
      pool.emplace_back([&] {
        for (int job = next++; job < jobs && !failed; job = next++) {
          const int weight = job % 10 == 9 ? permits : 1;  // Each tenth job wants it all.
          std::error_code ec;
          auto lease = uploads.acquire({.ttl = 10s, .wait = 30s, .permits = weight}, ec);
          if (ec) {
            std::fprintf(stderr, "worker_pool: %s\n", ec.message().c_str());
            failed = true;
            return;
          }
          work(job, weight, *lease);
          lease->release();
        }
      });
    }
    for (auto& worker : pool) worker.join();
    return failed ? 1 : 0;
  } catch (const holdfast::error& e) {
    return std::fprintf(stderr, "worker_pool: %s\n", e.what()), 1;
  }
}
