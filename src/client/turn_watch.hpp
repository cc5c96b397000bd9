// SPDX-License-Identifier: Apache-2.0
// Tells those who wait in the line of one server of a quorum that this server is gone, so that they go to another's. A
// client of one server would wait for it to come back, because there is no other place to stand in line. It hears of
// the connection that they wait on, and not of the keeper's, whose end costs nobody his place.
#pragma once

#include "client/quorum.hpp"

#include <holdfast/observer.hpp>

#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class quorum::turn_watch final : public observer {
public:
  // Stops when the connection that there is now, or will be next, ends.
  std::stop_token gone() {
    const std::lock_guard held{mutex_};
    return gone_.get_token();
  }

  void on_disconnected(const std::string& /*endpoint*/, std::error_code /*why*/) override {
    std::stop_source ended{std::nostopstate};
    {
      const std::lock_guard held{mutex_};
      ended = std::exchange(gone_, std::stop_source{});
    }
    ended.request_stop();
  }

private:
  std::mutex mutex_{};
  std::stop_source gone_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
