// SPDX-License-Identifier: Apache-2.0
// Asks the nodes of a cluster who serves which slot: for whoever needs to know, when something looks wrong, and again
// and again as long as somebody may believe that he holds a lock there (engine/cluster_slots.hpp). A thread of its own,
// because they must be asked whatever the callers and the keepers are doing.
#pragma once

#include "engine/cluster_slots.hpp"
#include "engine/cluster_talk.hpp"
#include "net/asked_line.hpp"
#include "net/endpoint.hpp"
#include "net/event_fd.hpp"

#include <holdfast/error.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::net {

struct cluster_seeds {
  std::vector<tcp_address> nodes;
  engine::credentials who;
  bool uses_tls = false;
  tls_files tls{};
};

class cluster_watch : public std::enable_shared_from_this<cluster_watch> {
public:
  // `worth`: of being named a primary, see engine/named_primary.hpp. They are asked four times in
  // its grants_for(), every half second for a ttl of 12 s or more, from the first look on.
  cluster_watch(cluster_seeds whom, duration worth);
  ~cluster_watch();
  cluster_watch(const cluster_watch&) = delete;
  cluster_watch& operator=(const cluster_watch&) = delete;

  // Called on the watch's thread after each round with what is known. Set once, before the first look.
  void on_map(std::function<void(const engine::slot_map&)> tell) { tell_of_map_ = std::move(tell); }

  // Why a round named nobody.
  struct trouble {
    errc code = errc::no_primary;
    std::string text{};
    bool is_final = false;    // Asking again will not help.
    bool is_refusal = false;  // Every one of them definitely said no.
  };
  // They are asked soon. From any thread, also under any mutex but those that on_map's receiver takes; starts the
  // thread if need be. Throws std::system_error if there is no thread to be had.
  void look();
  // The same, and tells the outcome of that round once, after on_map: an empty text if somebody is named.
  void look(const std::function<void(const trouble&)>& whom);

  // Ends the thread. `wait`: until it has ended; not on the thread itself.
  void close(bool wait) noexcept;

private:
  using line = asked_line<engine::cluster_talk>;
  using addresses = std::set<engine::cluster_address>;
  using receivers = std::vector<std::function<void(const trouble&)>>;

  void begin_round(receivers* waiting);
  void run();
  trouble round();
  trouble ask_all();
  void add_lines(const std::vector<engine::cluster_address>& where);
  // `read`: whose answers of this round have been looked at for that.
  void ask_whom_they_name(addresses& read);
  // Than the one that is known.
  bool is_of_another_cluster(const engine::slots_answer& what) const;
  std::vector<engine::slots_vote> votes() const;
  std::size_t answered() const;
  bool all_are_done() const;
  trouble why_nobody() const;
  void forget_strangers();
  void wait(time_point until);
  bool must_end() const;
  time_point next_round(time_point last) const;

  const cluster_seeds seeds_;
  const duration period_;
  std::function<void(const engine::slot_map&)> tell_of_map_{};
  // The thread's own.
  std::map<engine::cluster_address, std::unique_ptr<line>> lines_{};
  engine::slot_map map_{};
  bool is_map_confirmed_ = false;  // In the last round.

  event_fd wake_{};
  mutable std::mutex mutex_{};
  receivers waiting_{};
  bool is_wanted_ = false;  // A round, soon.
  bool is_closing_ = false;
  std::thread thread_{};
};

}  // namespace holdfast::net
