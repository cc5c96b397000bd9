// SPDX-License-Identifier: Apache-2.0
// What stands on the keeper's agenda; keeper.cpp and renewing.hpp alone see it.
#pragma once

#include "engine/keeper.hpp"

namespace holdfast::engine {

// Something that the keeper has to do at a certain time.
class keeper::task {
public:
  explicit task(keeper& of) : number{++of.last_number_}, of_{&of} {}
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  virtual ~task() { of_->agenda_.remove(place); }

  virtual void run(time_point now) = 0;
  virtual void on_ready(time_point now) = 0;
  // It was there, and has ended.
  virtual void on_down(time_point /*now*/) {}
  // A connection for it could not be made, and the server has said why.
  virtual void on_unsent(errc /*why*/) {}

  const std::uint64_t number;
  agenda<task>::place place;

protected:
  keeper& of() const { return *of_; }

private:
  keeper* of_;
};

}  // namespace holdfast::engine
