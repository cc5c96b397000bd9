// SPDX-License-Identifier: Apache-2.0
// The calls that no thread waits for: who of them wants to be woken when, and who is over. A thread that waits looks
// after its own call; these are looked after by whoever drives the connection, and there may be ten thousand of them.
#pragma once

#include "base/time.hpp"
#include "engine/call.hpp"
#include "engine/caller.hpp"

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::engine {

// Not thread-safe: the driver calls everything under one mutex. A call must not move while it is here.
class unattended final : public call_listener {
public:
  explicit unattended(caller& with) : caller_{&with} {}

  // Starts it. It is here until take_over() gives it back.
  void start(call& what, time_point now);
  // It is not here after all, whatever start() came to: it threw.
  void take_back(call& what);
  // Something happened to it outside of the connection: it was cancelled.
  void look_at(call& what);

  // Steps whoever is due, in the order of the instants, and at one instant in the order of the starts: so calls that
  // were started one after the other join a line in that order.
  void step_due(time_point now);
  // The past, if somebody is over already.
  time_point wake_at() const {
    if (!over_.empty()) return time_point{};
    return agenda_.empty() ? never : agenda_.begin()->on_agenda_at_;
  }

  std::size_t over() const { return over_count_; }
  // Those that are over, in the order in which they ended; stopped. Without memory they stay.
  std::vector<call*> take_over();
  // Of those the ones that go on at another server. The others stay.
  std::vector<call*> take_moved();
  // Those that are not.
  std::vector<call*> all();

  void on_news(call& of) override { look_at(of); }

private:
  void leave_over(call& what);
  template <class Which>
  std::vector<call*> take(Which which);

  struct in_order {
    using type = std::pair<time_point, std::uint64_t>;
    type operator()(const call& what) const { return {what.on_agenda_at_, what.number_}; }
  };
  using agenda = boost::intrusive::set<
      call,
      boost::intrusive::member_hook<call, boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>,
                                    &call::on_agenda_>,
      boost::intrusive::key_of_value<in_order>, boost::intrusive::constant_time_size<false>>;

  caller* caller_;
  std::uint64_t last_number_ = 0;
  // All that are not over, also who waits for ever. No engine/agenda.hpp: each waits for an instant of its own, and
  // would need a list of its own there.
  agenda agenda_;
  // By the number of their ends in the instant's place, so that an end needs no memory.
  agenda over_;
  std::size_t over_count_ = 0;
  duration::rep last_end_ = 0;
};

}  // namespace holdfast::engine
