// SPDX-License-Identifier: Apache-2.0
#include "support/key_events.hpp"

#include "support/eventually.hpp"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace holdfast::test {

struct key_events::hidden {
  std::unique_ptr<redisContext, decltype(&redisFree)> context{nullptr, redisFree};
  int stop = -1;
  std::mutex mutex;
  std::vector<key_event> events;
  int fences_seen = 0;
  int fences_made = 0;
  std::thread thread;

  void note(const redisReply& message) {
    if (message.type != REDIS_REPLY_ARRAY || message.elements != 4) return;
    const std::string channel{message.element[2]->str, static_cast<std::size_t>(message.element[2]->len)};
    const std::string key{message.element[3]->str, static_cast<std::size_t>(message.element[3]->len)};
    const std::lock_guard hold{mutex};
    if (key == "key_events_fence") {
      if (channel.ends_with(":set")) ++fences_seen;
      return;
    }
    events.push_back({channel.substr(channel.rfind(':') + 1), key});
  }

  void run() {
    for (;;) {
      pollfd both[] = {{context->fd, POLLIN, 0}, {stop, POLLIN, 0}};
      ::poll(both, 2, -1);
      if (both[1].revents != 0 || redisBufferRead(context.get()) != REDIS_OK) return;
      void* reply = nullptr;
      while (redisReaderGetReply(context->reader, &reply) == REDIS_OK && reply != nullptr) {
        note(*static_cast<redisReply*>(reply));
        freeReplyObject(reply);
      }
    }
  }
};

key_events::key_events(redis_server& server) : server_{server}, hidden_{std::make_unique<hidden>()} {
  server("CONFIG", "SET", "notify-keyspace-events", "EA", "client-output-buffer-limit", "pubsub 0 0 0");
  hidden_->context.reset(redisConnectUnix(server.socket().c_str()));
  void* reply = redisCommand(hidden_->context.get(), "PSUBSCRIBE __keyevent@*");
  if (reply == nullptr) throw std::runtime_error("no key events from the server");
  freeReplyObject(reply);
  hidden_->stop = ::eventfd(0, EFD_CLOEXEC);
  hidden_->thread = std::thread{[this] { hidden_->run(); }};
}

key_events::~key_events() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(hidden_->stop, &one, sizeof one);
  hidden_->thread.join();
  ::close(hidden_->stop);
}

std::vector<key_event> key_events::take() {
  // A write of our own, and its event: all before it have been read when it has.
  ++hidden_->fences_made;
  server_("SET", "key_events_fence", "x", "PX", "1000");
  eventually(
      [&] {
        const std::lock_guard hold{hidden_->mutex};
        return hidden_->fences_seen == hidden_->fences_made;
      },
      60s);
  const std::lock_guard hold{hidden_->mutex};
  return std::move(hidden_->events);
}

}  // namespace holdfast::test
