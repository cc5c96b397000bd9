// SPDX-License-Identifier: Apache-2.0
// One update of what a lock protects, by a program that was granted it: raise, read, write. Each is a request that gets
// there whatever becomes of its program meanwhile, and long after the lease is over, perhaps; between two of them the
// program runs, or stands still. Programs of one server and of a quorum do the same here, so it is nobody's part.
#pragma once

#include "event_queue.hpp"
#include "guarded_store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace holdfast::sim {

struct guarded_update {
  event_queue* events;
  guarded_store* store;
  int lock;
  std::uint64_t token;
  std::function<duration()> way;                               // How long the next request takes.
  std::function<void(duration, std::function<void()>)> after;  // The program's own.
  std::function<void(guarded_store::written)> on_written;

  static void begin(guarded_update what) {
    const auto one = std::make_shared<guarded_update>(std::move(what));
    one->events->after(one->way(), [one] {
      const bool is_newest = one->store->raise(one->lock, one->token);
      one->after(one->way() / 8, [one, is_newest] {
        if (is_newest) read(one);
      });
    });
  }

private:
  static void read(const std::shared_ptr<guarded_update>& one) {
    one->events->after(one->way(), [one] {
      const auto number = one->store->read(one->lock);
      one->after(one->way() / 8, [one, number] { write(one, number); });
    });
  }
  static void write(const std::shared_ptr<guarded_update>& one, std::uint64_t was_read) {
    one->events->after(one->way(),
                       [one, was_read] { one->on_written(one->store->write(one->lock, one->token, was_read)); });
  }
};

}  // namespace holdfast::sim
