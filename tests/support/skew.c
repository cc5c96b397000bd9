// SPDX-License-Identifier: Apache-2.0
// Clocks that a test can turn: LD_PRELOAD this into a process with SKEW_FILE naming a file of two int64, in
// microseconds. The first is the offset of the wall clock: CLOCK_MONOTONIC and BOOTTIME stay true, as on a machine
// whose time is set (H4, H5, H6, H8). The second is for how long the machine has slept: only CLOCK_BOOTTIME is so much
// later, and whoever waits on another clock waits on (H2). The file is mapped, so a change takes effect at the next
// look at the clock.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct turned {
  int64_t wall_us;
  int64_t slept_us;
};
static volatile struct turned* turned;

__attribute__((constructor)) static void map_file(void) {
  const char* path = getenv("SKEW_FILE");
  const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* page = mmap(NULL, sizeof *turned, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) turned = page;
}

static void turn(struct timespec* now, int64_t us) {
  const int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + us * 1000;
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
}

// The system call and not dlsym's function: the allocator asks for the time before dlsym works.
int clock_gettime(clockid_t clock, struct timespec* now) {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (result != 0 || turned == NULL) return (int)result;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) turn(now, turned->wall_us);
  if (clock == CLOCK_BOOTTIME) turn(now, turned->slept_us);
  return (int)result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* where) {
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return (time_t)-1;
  if (where != NULL) *where = precise.tv_sec;
  return precise.tv_sec;
}
