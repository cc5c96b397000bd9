// SPDX-License-Identifier: Apache-2.0
#include "net/cluster_watch.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/wait_for.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace holdfast::net {

using namespace std::chrono_literals;

namespace {

// Between two rounds for those who want to know.
constexpr duration least_pause = 20ms;

engine::cluster_address address_of(const tcp_address& where) { return {where.host, where.port}; }

}  // namespace

cluster_watch::cluster_watch(cluster_seeds whom, duration worth)
    : seeds_{std::move(whom)}, period_{engine::named_primary{worth}.grants_for() / 4} {
  map_.owner.assign(engine::slot_count, engine::slot_map::nobody);
}

cluster_watch::~cluster_watch() = default;

void cluster_watch::look() { look(nullptr); }

void cluster_watch::look(const std::function<void(const trouble&)>& whom) {
  bool is_too_late = false;
  {
    const std::lock_guard held{mutex_};
    is_too_late = is_closing_;
    if (!is_closing_) {
      if (!thread_.joinable()) thread_ = start_quietly([self = shared_from_this()] { self->run(); });
      if (whom) waiting_.push_back(whom);
      is_wanted_ = true;
    }
  }
  if (is_too_late && whom) return whom({errc::no_primary, "the client is closed", true, false});
  wake_.set();
}

void cluster_watch::close(bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    is_closing_ = true;
    ending = std::move(thread_);
  }
  wake_.set();
  let_end(std::move(ending), wait);
}

bool cluster_watch::must_end() const {
  const std::lock_guard held{mutex_};
  return is_closing_;
}

time_point cluster_watch::next_round(time_point last) const {
  const std::lock_guard held{mutex_};
  return last + (is_wanted_ ? least_pause : period_);
}

void cluster_watch::run() {
  while (!must_end()) {
    const time_point began_at = boottime_now();
    receivers whom;
    {
      const std::lock_guard held{mutex_};
      whom.swap(waiting_);
      is_wanted_ = false;
    }
    const auto outcome = round();
    if (must_end()) return;
    for (const auto& tell : whom) tell(outcome);
    while (!must_end() && boottime_now() < next_round(began_at)) wait(next_round(began_at));
  }
}

// Whatever there is not enough of, descriptors for one more node say, there may be in the next round.
cluster_watch::trouble cluster_watch::round() {
  try {
    auto outcome = ask_all();
    if (is_map_confirmed_ && !must_end()) tell_of_map_(map_);
    return outcome;
  } catch (const std::exception& e) {
    return {errc::cannot_connect, e.what(), false, false};
  }
}

// Those whom the last map names; those of the URI, when that is of no help.
cluster_watch::trouble cluster_watch::ask_all() {
  const time_point began_at = boottime_now();
  const time_point until = began_at + answer_patience;
  // Whoever goes by what a round says needs the next one in time (engine/named_primary.hpp): who is silent in each of
  // them must not make them so long that nothing can be granted in between.
  const time_point next_at = began_at + period_;
  if (!is_map_confirmed_) {
    std::vector<engine::cluster_address> all;
    for (const auto& one : seeds_.nodes) all.push_back(address_of(one));
    add_lines(all);
  }
  is_map_confirmed_ = false;
  for (const auto& [where, one] : lines_) one->ask();
  std::size_t heard = 0;
  addresses read;
  for (;;) {
    ask_whom_they_name(read);
    const time_point now = boottime_now();
    const bool is_over = all_are_done() || now >= until;
    const auto answers = answered();
    // With fewer there is no majority. Each count goes through all that each of hundreds may say.
    const bool may_be_enough = answers > heard && (map_.ids.empty() || answers * 2 > map_.primaries.size());
    if (may_be_enough || now >= next_at || is_over) {
      heard = answers;
      const auto all = votes();
      auto round = engine::named_by_majority(all, map_);
      // Not the first majority that will do: who is still to answer may have moved a slot a moment ago, or know better
      // which cluster it is.
      const bool is_whole = round && (round->covered() == engine::slot_count || now >= next_at);
      const bool is_it = round && (!map_.ids.empty() || engine::of_uri(all, round->ids) * 2 > seeds_.nodes.size());
      if (round && ((is_whole && is_it) || is_over)) {
        map_ = engine::merged(map_, std::move(*round));
        is_map_confirmed_ = true;
        forget_strangers();
        return {errc::no_primary, {}, false, false};
      }
    }
    if (is_over || must_end()) return why_nobody();
    wait(now < next_at ? next_at : until);
  }
}

void cluster_watch::add_lines(const std::vector<engine::cluster_address>& where) {
  for (const auto& one : where) {
    if (lines_.contains(one)) continue;
    const endpoint there{tcp_address{one.host, one.port}, seeds_.uses_tls, seeds_.tls};
    auto made = std::make_unique<line>(there, engine::cluster_talk{seeds_.who, one});
    const auto& added = lines_.emplace(one, std::move(made)).first->second;
    if (!must_end()) added->ask();
  }
}

// Whom an answer names is asked in the same round: without him there may be no majority.
void cluster_watch::ask_whom_they_name(addresses& read) {
  std::vector<engine::cluster_address> named;
  for (const auto& [where, one] : lines_) {
    if (!one->answer() || !one->answer()->slots || !read.insert(where).second) continue;
    if (is_of_another_cluster(*one->answer()->slots)) continue;
    for (const auto& primary : one->answer()->slots->primaries) {
      if (!primary.where.host.empty()) named.push_back(primary.where);
    }
  }
  add_lines(named);
}

bool cluster_watch::is_of_another_cluster(const engine::slots_answer& what) const {
  return !map_.ids.empty() && !engine::is_of_cluster(what, map_.ids);
}

std::vector<engine::slots_vote> cluster_watch::votes() const {
  std::vector<engine::slots_vote> all;
  addresses of_uri;
  for (const auto& seed : seeds_.nodes) of_uri.insert(address_of(seed));
  for (const auto& [where, one] : lines_) {
    if (!one->answer() || !one->answer()->slots) continue;
    all.push_back({where, *one->answer()->slots, one->asked_at(), of_uri.contains(where)});
  }
  return all;
}

std::size_t cluster_watch::answered() const {
  return static_cast<std::size_t>(std::count_if(
      lines_.begin(), lines_.end(), [](const auto& l) { return l.second->answer() && l.second->answer()->slots; }));
}

bool cluster_watch::all_are_done() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& one) { return one.second->answer().has_value(); });
}

cluster_watch::trouble cluster_watch::why_nobody() const {
  trouble out{errc::no_primary, {}, !lines_.empty(), !lines_.empty()};
  bool is_first = true;
  for (const auto& [where, one] : lines_) {
    const auto& answer = one->answer();
    std::string why = "no answer";
    if (answer && !answer->slots) why = answer->failure;
    if (answer && answer->slots)
      why = is_of_another_cluster(*answer->slots) ? "it is of another cluster" : "it answers";
    out.text += (out.text.empty() ? "" : "; ") + text_of(tcp_address{where.host, where.port}) + ": " + why;
    const bool has_failed = answer && !answer->slots;
    out.is_final = out.is_final && has_failed && answer->is_final;
    out.is_refusal = out.is_refusal && has_failed && one->is_refused();
    const errc code = has_failed ? answer->code : errc::no_primary;
    out.code = is_first || out.code == code ? code : errc::no_primary;
    is_first = false;
  }
  return out;
}

// Whoever serves nothing any more is not asked any more.
void cluster_watch::forget_strangers() {
  std::vector<char> serves(map_.primaries.size(), 0);
  for (const auto owner : map_.owner) {
    if (owner != engine::slot_map::nobody) serves[owner] = 1;
  }
  std::set<engine::cluster_address> known;  // Not of each slot: there are 16,384, in each round.
  for (std::size_t i = 0; i < serves.size(); ++i) {
    if (serves[i] != 0) known.insert(map_.primaries[i].where);
  }
  std::erase_if(lines_, [&](const auto& one) { return !known.contains(one.first); });
}

void cluster_watch::wait(time_point until) {
  std::vector<pollfd> fds;
  std::vector<line*> whose;
  for (const auto& [where, one] : lines_) {
    fds.push_back(one->poll_for());
    whose.push_back(one.get());
  }
  fds.push_back({wake_.get(), POLLIN, 0});
  wait_for(fds, until);
  if (fds.back().revents) wake_.clear();
  for (std::size_t i = 0; i < whose.size(); ++i) whose[i]->collect(fds[i].revents);
}

}  // namespace holdfast::net
