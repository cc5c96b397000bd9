// SPDX-License-Identifier: Apache-2.0
// A hand-off between two processes: from just before the release in one to the acquired lease in the other, which waits
// in line. Beside it the least that any waking through Redis can take: PUBLISH in one, the message read in the other;
// and LPUSH in one, BLPOP in the other, which hands something over and not only wakes.
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/holdfast.hpp>

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <new>
#include <string>
#include <vector>

namespace bench {

namespace {

using namespace std::chrono_literals;
using nanoseconds = std::chrono::nanoseconds;
using microseconds = std::chrono::duration<double, std::micro>;

// What the two processes share.
struct board {
  sem_t go;
  sem_t done;
  nanoseconds woken_at;
};

nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void pause_for(nanoseconds time) {
  const timespec step{0, time.count()};
  nanosleep(&step, nullptr);
}

// The process that is woken: by the line, a message and an element of a list, in turns, until it is killed.
[[noreturn]] void wait_for_ever(const std::string& where, board& shared) {
  auto locks = make_client(where);
  const hiredis ears{where};
  ears.ask({"SUBSCRIBE", "bench:raw"});
  const hiredis hands{where};
  for (;;) {
    sem_wait(&shared.go);
    auto held = locks.acquire("bench:hand-off");
    shared.woken_at = now();
    held.release();
    sem_post(&shared.done);

    sem_wait(&shared.go);
    ears.receive();
    shared.woken_at = now();
    sem_post(&shared.done);

    sem_wait(&shared.go);
    hands.ask({"BLPOP", "bench:list", "0"});
    shared.woken_at = now();
    sem_post(&shared.done);
  }
}

microseconds hand_off_once(holdfast::client& locks, const hiredis& look, board& shared) {
  auto held = locks.acquire("bench:hand-off");
  sem_post(&shared.go);
  while (look.ask({"ZCARD", "hf:{bench:hand-off}:line"}) != "1") pause_for(100us);
  pause_for(500us);  // Until it sleeps.
  const auto from = now();
  held.release();
  sem_wait(&shared.done);
  return shared.woken_at - from;
}

// `words` wake whoever waits in the other process; the server answers 1.
microseconds wake_once(const hiredis& say, const std::vector<std::string>& words, board& shared) {
  sem_post(&shared.go);
  pause_for(500us);
  const auto from = now();
  must(say.ask(words) == "1", "nobody was woken");
  sem_wait(&shared.done);
  return shared.woken_at - from;
}

struct times {
  double line, message, element;
};

}  // namespace

void hand_off(const course& how) {
  void* memory = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  auto& shared = *new (memory) board{};
  must(sem_init(&shared.go, 1, 0) == 0 && sem_init(&shared.done, 1, 0) == 0, "sem_init");
  const pid_t waiter = fork();
  if (waiter == 0) wait_for_ever(how.where, shared);

  auto locks = make_client(how.where);
  const hiredis say{how.where};
  const auto all = [&]() -> times {
    const auto line = hand_off_once(locks, say, shared);
    const auto message = wake_once(say, {"PUBLISH", "bench:raw", "x"}, shared);
    return {line.count(), message.count(), wake_once(say, {"LPUSH", "bench:list", "x"}, shared).count()};
  };
  for (int i = 0; i < 20; ++i) all();  // Connections are made, scripts are known.
  figure found;
  figure beside_a_list;
  for (int i = 0; i < how.rounds; ++i) {
    std::vector<double> ours;
    std::vector<double> messages;
    std::vector<double> elements;
    for (int k = 0; k < static_cast<int>(400 * how.seconds); ++k) {
      const auto [line, message, element] = all();
      ours.push_back(line);
      messages.push_back(message);
      elements.push_back(element);
    }
    found.ours.push_back(median(ours));
    found.theirs.push_back(median(messages));
    beside_a_list.ours.push_back(found.ours.back());
    beside_a_list.theirs.push_back(median(elements));
  }
  kill(waiter, SIGKILL);
  waitpid(waiter, nullptr, 0);
  munmap(memory, sizeof(board));

  found.id = "handoff_processes";
  found.what = "hand-off between processes, median";
  found.unit = "us";
  found.yardstick = "a message by PUBLISH";
  found.goal_is = bound::at_most;
  found.goal = 2.2;
  tell(found);

  beside_a_list.id = "handoff_blpop";
  beside_a_list.what = "the same";
  beside_a_list.unit = "us";
  beside_a_list.yardstick = "an element by LPUSH and BLPOP";
  tell(beside_a_list);
}

}  // namespace bench
