// SPDX-License-Identifier: Apache-2.0
// Asks the sentinels who the primary is: for whoever wants to connect, and again and again as long as somebody may
// believe that he holds a lock there (engine/named_primary.hpp). A thread of its own, because the sentinels must be
// asked whatever the primary, the callers and the keeper are doing.
#pragma once

#include "engine/greeting.hpp"
#include "engine/named_primary.hpp"
#include "engine/sentinel_talk.hpp"
#include "net/asked_line.hpp"
#include "net/endpoint.hpp"
#include "net/event_fd.hpp"

#include <holdfast/error.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::net {

struct sentinel_set {
  std::vector<tcp_address> sentinels;
  std::string primary;      // Its name among them.
  engine::credentials who;  // For the sentinels, not for the primary.
  bool uses_tls = false;
  tls_files tls{};
};

class sentinel_watch : public std::enable_shared_from_this<sentinel_watch> {
public:
  // `worth`, `drift`: of being named, see engine/named_primary.hpp.
  sentinel_watch(const sentinel_set& whom, duration worth, core::clock_drift drift = {});
  ~sentinel_watch();
  sentinel_watch(const sentinel_watch&) = delete;
  sentinel_watch& operator=(const sentinel_watch&) = delete;

  struct found {
    tcp_address where{};
    engine::named_primary::term_number term = 0;  // 0: nobody is named, and why:
    std::string failure{};
    errc code = errc::no_primary;
    bool is_final = false;  // Asking again will not help.
  };
  // Tells it once: here and now who was named last, if that is not long ago, else on the watch's thread when they were
  // asked. They are asked in either case, so that who finds nobody there is told better the next time. Starts the
  // thread if need be; from then on they are asked four times in named_primary::grants_for(), every half second for a
  // ttl of 12 s or more, until close(). Throws std::system_error if there is no thread to be had.
  void find(const std::function<void(const found&)>& whom);

  std::shared_ptr<const engine::named_primary> primary() const { return named_; }
  const sentinel_set& whom() const { return whom_; }

  // Called on the watch's thread when another primary is named than before. Set once, before the first find().
  void on_change(std::function<void()> tell) { tell_of_change_ = std::move(tell); }

  // Ends the thread. `wait`: until it has ended; not on the thread itself.
  void close(bool wait) noexcept;

private:
  void run();
  found ask_all();
  bool all_are_done() const;
  found what_they_say();
  found why_nobody(const std::vector<engine::sentinel_voice>& heard) const;
  void wait(time_point until);
  bool must_end() const;
  time_point next_round(time_point last) const;

  const std::shared_ptr<engine::named_primary> named_;
  const duration period_;
  std::function<void()> tell_of_change_{};
  const sentinel_set whom_;
  std::vector<std::unique_ptr<asked_line<engine::sentinel_talk>>> lines_{};  // The thread's own; in their order.
  event_fd wake_{};
  mutable std::mutex mutex_{};
  std::vector<std::function<void(const found&)>> waiting_{};
  bool is_wanted_ = false;  // A round, soon.
  found last_{};            // Who was named, by a majority,
  time_point last_at_{};    // that was asked then.
  bool is_closing_ = false;
  std::thread thread_{};
};

}  // namespace holdfast::net
