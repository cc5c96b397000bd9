// SPDX-License-Identifier: Apache-2.0
#include "client/cluster_nodes.hpp"

#include "client/lock_soon.hpp"
#include "client/reporter.hpp"
#include "net/clock.hpp"
#include "script/slot.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

std::shared_ptr<cluster_nodes> cluster_nodes::make(const net::cluster_seeds& seeds, duration worth,
                                                   core::clock_drift drift, maker make_node) {
  std::shared_ptr<cluster_nodes> made{new cluster_nodes{seeds, worth, drift, std::move(make_node)}};
  made->watch_->on_map([self = std::weak_ptr{made}](const engine::slot_map& map) {
    if (const auto nodes = self.lock()) nodes->take(map);
  });
  return made;
}

cluster_nodes::cluster_nodes(const net::cluster_seeds& seeds, duration worth, core::clock_drift drift, maker make_node)
    : worth_{worth},
      drift_{drift},
      make_node_{std::move(make_node)},
      security_{net::tcp_address{}, seeds.uses_tls, seeds.tls},
      watch_{std::make_shared<net::cluster_watch>(seeds, worth)} {
  auto where = security_;
  where.where = net::cluster_node_address{watch_, nullptr, nullptr};
  lobby_ = make_node_(std::move(where), {});
}

const std::shared_ptr<node>& cluster_nodes::node_for(std::string_view key) const {
  const auto slot = static_cast<std::size_t>(script::slot_of(key));
  const std::lock_guard held{mutex_};
  return serves_[slot] ? serves_[slot]->at : lobby_;
}

bool cluster_nodes::is_known() const {
  const std::lock_guard held{mutex_};
  return covered_ > 0;
}

std::vector<cluster_nodes::primary> cluster_nodes::primaries() const {
  std::optional<std::string> does_not_matter;
  return primaries(does_not_matter);
}

std::vector<cluster_nodes::primary> cluster_nodes::primaries(std::optional<std::string>& why_one_is_missing) const {
  const std::lock_guard held{mutex_};
  why_one_is_missing = why_one_is_missing_;
  std::vector<primary> found;
  for (const auto& one : members_) {
    if (one->slots == 0) continue;
    found.push_back({one->id, one->at, one->where, one->replicas, one->slots});
  }
  return found;
}

std::string cluster_nodes::address_of(const node& which) const {
  const std::lock_guard held{mutex_};
  for (const auto& one : members_) {
    if (one->at.get() == &which) return text_of(one->where);
  }
  return {};
}

int cluster_nodes::epoch_tag_of(const node& which) const {
  const std::lock_guard held{mutex_};
  for (const auto& one : members_) {
    if (one->at.get() == &which) return *one->epoch_tag;
  }
  return 0;
}

const std::shared_ptr<node>& cluster_nodes::node_of(const engine::channel& commands) const {
  const std::lock_guard held{mutex_};
  for (const auto& one : members_) {
    if (&one->at->commands()->channel() == &commands) return one->at;
  }
  return lobby_;
}

std::vector<std::shared_ptr<node>> cluster_nodes::all() const {
  const std::lock_guard held{mutex_};
  std::vector<std::shared_ptr<node>> found{lobby_};
  for (const auto& one : members_) found.push_back(one->at);
  return found;
}

// The watch first, because it adds nodes. Who does not wait for its end has it add one more that is closed already.
void cluster_nodes::close(duration at_most, bool wait) noexcept {
  watch_->close(wait);
  {
    const std::lock_guard held{mutex_};
    is_closed_ = true;
  }
  try {
    const time_point until = net::boottime_now() + at_most;
    for (const auto& one : all()) one->close(std::max(duration{0}, until - net::boottime_now()), wait);
  } catch (...) {
    // No memory: they end with the process.
  }
}

// ---- on the watch's thread ----

// By its id: whoever has another address now is the same node, with the same leases and calls. Null: it is new.
cluster_nodes::member* cluster_nodes::known(const engine::cluster_primary& who) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m->id == who.id; });
  return found == members_.end() ? nullptr : found->get();
}

cluster_nodes::member& cluster_nodes::made_for(const engine::cluster_primary& who) {
  auto made = std::make_unique<member>();
  made->id = who.id;
  made->where = {who.where.host, who.where.port};
  made->lies_at = std::make_shared<net::moving_address>(made->where);
  made->named = std::make_shared<engine::named_primary>(worth_, drift_);
  made->epoch_tag = std::make_shared<std::atomic<int>>(0);
  auto where = security_;
  where.where = net::cluster_node_address{watch_, made->lies_at, made->named};
  const auto look = [watch = std::weak_ptr{watch_}] {
    if (const auto w = watch.lock()) w->look();
  };
  made->at = make_node_(std::move(where), {made->id, made->named, made->epoch_tag, look});
  bool is_late = false;
  {
    const std::lock_guard held{mutex_};
    is_late = is_closed_;
    members_.push_back(std::move(made));
  }
  if (is_late) members_.back()->at->close(duration{0}, false);
  return *members_.back();
}

// To its cluster it is the same primary, to its connections it is another one: they end, and are made there.
bool cluster_nodes::name(member& who, const engine::cluster_primary& as, time_point asked_at) {
  const net::tcp_address where{as.where.host, as.where.port};
  const bool has_moved = text_of(where) != text_of(who.where);
  if (has_moved) {
    who.lies_at->move_to(where);
    const std::lock_guard held{mutex_};
    who.where = where;
  }
  who.named->name(who.id + " at " + text_of(where), asked_at, net::boottime_now());
  return has_moved;
}

namespace {

// The smallest number whose slot is among those: what a node's epoch is kept under.
template <class Serves>
int tag_in(const Serves& is_served) {
  for (int n = 0;; ++n) {
    if (is_served(static_cast<std::size_t>(script::slot_of(std::to_string(n))))) return n;
  }
}

// What is done for each of several, though it fails for one of them.
class attempts {
public:
  template <class What>
  void one(What&& what) {
    try {
      what();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  // Throws what failed first, if anything did.
  void end() const {
    if (first_) std::rethrow_exception(first_);
  }

private:
  std::exception_ptr first_{};
};

}  // namespace

void cluster_nodes::take(const engine::slot_map& map) {
  bool has_changed = false;
  attempts each;
  const auto name_it = [&](member& who, std::size_t i) {
    if (map.is_named[i] && name(who, map.primaries[i], map.asked_at)) has_changed = true;
  };
  // Named before anything is sent there; and before anybody is made, for which there may be too little of something:
  // the leases of the others hang on their being named, again and again.
  for (std::size_t i = 0; i < map.primaries.size(); ++i) {
    if (auto* const who = known(map.primaries[i])) each.one([&] { name_it(*who, i); });
  }
  std::optional<std::string> why_one_is_missing;
  std::vector<member*> by_index;  // Null: it could not be made. Its slots are nobody's until the next round.
  for (std::size_t i = 0; i < map.primaries.size(); ++i) {
    by_index.push_back(known(map.primaries[i]));
    if (by_index[i]) continue;
    each.one([&] {
      try {
        by_index[i] = &made_for(map.primaries[i]);
      } catch (const std::exception& e) {
        why_one_is_missing.emplace();  // Though there be no memory for more.
        *why_one_is_missing = e.what();
        throw;
      }
      name_it(*by_index[i], i);
    });
  }
  std::vector<std::size_t> slots(map.primaries.size(), 0);
  for (const auto owner : map.owner) {
    if (owner != engine::slot_map::nobody) ++slots[owner];
  }
  {
    const std::lock_guard held{mutex_};
    for (const auto& one : members_) one->slots = 0;
    for (std::size_t i = 0; i < by_index.size(); ++i) {
      if (!by_index[i]) continue;
      by_index[i]->slots = slots[i];
      by_index[i]->replicas = map.primaries[i].replicas;
    }
    for (std::size_t slot = 0; slot < serves_.size(); ++slot) {
      auto* const now = map.owner[slot] == engine::slot_map::nobody ? nullptr : by_index[map.owner[slot]];
      if (serves_[slot] == now) continue;
      serves_[slot] = now;
      has_changed = true;
    }
    covered_ = map.covered();
    why_one_is_missing_ = std::move(why_one_is_missing);
    for (const auto& one : members_) {
      // The smallest, also where the one that it had would do: all who know this map go by one key.
      if (one->slots > 0) *one->epoch_tag = tag_in([&](std::size_t slot) { return serves_[slot] == one.get(); });
    }
  }
  // What it says counts no more, and its connections end.
  for (const auto& one : members_) {
    if (one->slots == 0) one->named->name_nobody();
  }
  if (has_changed) is_move_due_ = true;
  move_on();
  each.end();  // Whoever waits for somebody to be named hears why there is nobody.
}

// Calls in every round, because one may have begun at a node that had just lost its slot; leases when a slot has moved,
// because they are put where they belong under moving(). What fails is made up for in the next round, as is what a
// caller's thread is in the way of that stands still: each node's leases hang on the rounds going on (P32).
void cluster_nodes::move_on() {
  struct round {
    std::atomic<bool>& due;
    const bool is_of_leases = due.exchange(false);
    bool is_done = false;
    ~round() {
      if (is_of_leases && !is_done) due = true;
    }
  } here{is_move_due_};
  bool is_all_moved = true;
  const auto serves = [this](const node& at) {
    return [this, &at](int slot) {
      const std::lock_guard held{mutex_};
      const auto* who = serves_[static_cast<std::size_t>(slot)];
      return who ? who->at.get() == &at : lobby_.get() == &at;
    };
  };
  for (const auto& at : all()) {
    if (here.is_of_leases) {
      std::unique_lock held{moving_, std::defer_lock};
      if (!lock_soon(held)) {
        is_all_moved = false;
        continue;
      }
      auto leaving = at->keeper().take_away(
          [&](const script::lock_keys& keys) { return !serves(*at)(script::slot_of(keys.holder)); });
      for (auto& one : leaving) {
        const auto& next = node_for(one.keys().holder);
        for (const auto& lease : one.several) static_cast<lease_record&>(*lease).kept_at = &next;
        next->keeper().adopt(std::move(one));
      }
    }
    at->commands()->leave_server(serves(*at));
    if (here.is_of_leases) at->look_around();
  }
  if (!here.is_of_leases) return;
  for (const auto& at : all()) at->keeper().start_if_it_keeps();
  here.is_done = is_all_moved;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
