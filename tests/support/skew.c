// SPDX-License-Identifier: Apache-2.0
// A wall clock that a test can turn: LD_PRELOAD this into redis-server with SKEW_FILE naming a file of one int64, the
// offset in microseconds. It is mapped, so a change takes effect at the next look at the clock. Only the wall clock is
// turned: CLOCK_MONOTONIC and BOOTTIME stay true, as on a machine whose time is set (H4, H5, H8).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t* offset_us;

__attribute__((constructor)) static void map_offset(void) {
  const char* path = getenv("SKEW_FILE");
  const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* page = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) offset_us = page;
}

static void turn(struct timespec* now) {
  if (offset_us == NULL) return;
  const int64_t turned = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *offset_us * 1000;
  now->tv_sec = turned / 1000000000;
  now->tv_nsec = turned % 1000000000;
}

// The system call and not dlsym's function: the allocator asks for the time before dlsym works.
int clock_gettime(clockid_t clock, struct timespec* now) {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) turn(now);
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
