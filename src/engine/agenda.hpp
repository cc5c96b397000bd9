// SPDX-License-Identifier: Apache-2.0
// What is to be done when. Many share an instant (core/lease_time.hpp, renewal_instant), so each instant has a list: a
// hundred thousand tasks need no tree of their own, and to put one off costs what it costs to find its new instant.
#pragma once

#include "base/time.hpp"

#include <list>
#include <map>
#include <optional>

namespace holdfast::engine {

template <class Task>
class agenda {
  using tasks = std::list<Task*>;
  using instants = std::map<time_point, tasks>;

public:
  // A task's own place, kept by the task.
  class place {
    friend class agenda;
    struct found {
      typename instants::iterator instant;
      typename tasks::iterator task;
    };
    std::optional<found> at_{};
  };

  agenda() = default;
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;

  // Then and not when it was planned before; behind what is planned for the same instant. `never` takes it out.
  void put(Task& what, place& where, time_point at) {
    if (at == never) return remove(where);
    if (where.at_ && where.at_->instant->first == at) return;
    if (!where.at_) {
      // In this order, because an instant without a task must not stay behind when there is no memory.
      tasks alone{&what};
      const auto instant = instants_.try_emplace(at).first;
      where.at_ = {instant, alone.begin()};
      instant->second.splice(instant->second.end(), alone);
      return;
    }
    const auto instant = instants_.try_emplace(at).first;
    const auto former = where.at_->instant;
    instant->second.splice(instant->second.end(), former->second, where.at_->task);
    where.at_->instant = instant;
    if (former->second.empty()) instants_.erase(former);
  }

  void remove(place& where) {
    if (!where.at_) return;
    const auto [instant, task] = *where.at_;
    where.at_.reset();
    instant->second.erase(task);
    if (instant->second.empty()) instants_.erase(instant);
  }

  time_point next() const { return instants_.empty() ? never : instants_.begin()->first; }
  // The one that was planned for next() first. Only when that is not `never`.
  Task& first() const { return *instants_.begin()->second.front(); }

private:
  instants instants_{};
};

}  // namespace holdfast::engine
