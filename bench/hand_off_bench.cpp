// SPDX-License-Identifier: Apache-2.0
// A hand-off between two processes: from just before the release in one to the acquired lease in the other, which waits
// in line. Beside it the least that any waking through Redis can take: PUBLISH in one, the message read in the other.
// Both in one run, in turns; the figure to quote is the ratio of the medians.
//
//   hand_off_bench SOCKET|PORT [ROUNDS]
#include <holdfast/holdfast.hpp>

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using nanoseconds = std::chrono::nanoseconds;

// What the two processes share.
struct board {
  sem_t go;
  sem_t done;
  nanoseconds woken_at;
};

void must(bool fact, const char* what) {
  if (fact) return;
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void pause_for(nanoseconds time) {
  const timespec step{0, time.count()};
  nanosleep(&step, nullptr);
}

bool is_port(const std::string& where) { return where.front() != '/'; }

struct close_context {
  void operator()(redisContext* c) const { redisFree(c); }
};
using context = std::unique_ptr<redisContext, close_context>;
struct free_reply {
  void operator()(redisReply* r) const { freeReplyObject(r); }
};
using reply = std::unique_ptr<redisReply, free_reply>;

context connect(const std::string& where) {
  context c{is_port(where) ? redisConnect("127.0.0.1", std::atoi(where.c_str())) : redisConnectUnix(where.c_str())};
  must(c && c->err == 0, "hiredis cannot connect");
  return c;
}

reply ask(redisContext* c, const char* words) {
  reply r{static_cast<redisReply*>(redisCommand(c, words))};
  must(r != nullptr, "hiredis: no reply");
  return r;
}

holdfast::client make_client(const std::string& where) {
  return holdfast::client{is_port(where) ? "redis://127.0.0.1:" + where : "redis+unix://" + where};
}

// The process that is woken: by the line and by a message, in turns, until it is killed.
[[noreturn]] void wait_for_ever(const std::string& where, board& shared) {
  auto locks = make_client(where);
  const auto ears = connect(where);
  ask(ears.get(), "SUBSCRIBE bench:raw");
  for (;;) {
    sem_wait(&shared.go);
    auto held = locks.acquire("bench:hand-off");
    shared.woken_at = now();
    held.release();
    sem_post(&shared.done);

    sem_wait(&shared.go);
    void* message = nullptr;
    must(redisGetReply(ears.get(), &message) == REDIS_OK, "no message");
    shared.woken_at = now();
    freeReplyObject(message);
    sem_post(&shared.done);
  }
}

nanoseconds hand_off(holdfast::client& locks, redisContext* look, board& shared) {
  auto held = locks.acquire("bench:hand-off");
  sem_post(&shared.go);
  while (ask(look, "ZCARD hf:{bench:hand-off}:line")->integer != 1) pause_for(100us);
  pause_for(500us);  // Until it sleeps.
  const auto from = now();
  held.release();
  sem_wait(&shared.done);
  return shared.woken_at - from;
}

nanoseconds publish(redisContext* say, board& shared) {
  sem_post(&shared.go);
  pause_for(500us);
  const auto from = now();
  must(ask(say, "PUBLISH bench:raw x")->integer == 1, "nobody listens");
  sem_wait(&shared.done);
  return shared.woken_at - from;
}

double microseconds_at(std::vector<nanoseconds>& all, double part) {
  std::sort(all.begin(), all.end());
  return static_cast<double>(all[static_cast<std::size_t>(static_cast<double>(all.size() - 1) * part)].count()) / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  must(argc >= 2, "usage: hand_off_bench SOCKET|PORT [ROUNDS]");
  const std::string where = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2000;
  void* memory = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  auto& shared = *new (memory) board{};
  must(sem_init(&shared.go, 1, 0) == 0 && sem_init(&shared.done, 1, 0) == 0, "sem_init");

  const pid_t waiter = fork();
  if (waiter == 0) wait_for_ever(where, shared);
  auto locks = make_client(where);
  const auto say = connect(where);
  std::vector<nanoseconds> ours;
  std::vector<nanoseconds> raw;
  for (int i = 0; i < rounds + 20; ++i) {
    const auto line = hand_off(locks, say.get(), shared);
    const auto message = publish(say.get(), shared);
    if (i < 20) continue;  // Connections are made, scripts are known.
    ours.push_back(line);
    raw.push_back(message);
  }
  kill(waiter, SIGKILL);
  waitpid(waiter, nullptr, 0);

  fmt::print("hand-off between two processes, {}, {} rounds in turns; median (10 % to 90 %)\n",
             is_port(where) ? "TCP loopback" : "Unix socket", rounds);
  for (auto* one : {&raw, &ours}) {
    fmt::print("  {} {:.0f} us ({:.0f} to {:.0f})\n", one == &raw ? "raw PUBLISH" : "holdfast   ",
               microseconds_at(*one, 0.5), microseconds_at(*one, 0.1), microseconds_at(*one, 0.9));
  }
  fmt::print("  ratio       {:.2f}\n", microseconds_at(ours, 0.5) / microseconds_at(raw, 0.5));
}
