// SPDX-License-Identifier: Apache-2.0
#include "cluster/map_watch.hpp"

#include "replicas/server_set.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

map_watch::map_watch(event_queue& events, server_set& whom, const settings& what, seeded_random rng, hooks how,
                     news tell)
    : watch{events, what, rng, std::move(how)}, whom_{&whom}, tell_{std::move(tell)} {}

void map_watch::look(const std::function<void()>& whom) {
  if (is_closed_) return whom ? whom() : void();
  if (whom) waiting_.push_back(whom);
  is_wanted_ = true;
  if (!std::exchange(is_started_, true)) {
    // Not inside of whoever wants to know.
    events().after(duration{0}, [this] { when_running([this] { begin_round(); }); });
  } else if (!is_asking_) {
    wait_for_next();
  }
}

void map_watch::begin_round() {
  if (is_closed_) return;
  is_asking_ = true;
  is_wanted_ = false;
  ++round_;
  asking_for_ = std::exchange(waiting_, {});
  began_at_ = now();
  if (!is_confirmed_) {
    for (std::size_t i = 0; i < whom_->size(); ++i) lines_[static_cast<int>(i)] = {};
  }
  is_confirmed_ = false;
  std::vector<int> all;
  for (auto& [server, one] : lines_) {
    one = {};
    all.push_back(server);
  }
  for (const int server : all) ask(server);
  events().after(answer_patience, [this, number = round_] {
    when_running([this, number] {
      if (number == round_ && is_asking_) judge(true);
    });
  });
}

void map_watch::ask(int server) {
  events().after(way(), [this, server, number = round_] {
    auto& asked = whom_->of(static_cast<std::size_t>(server));
    const bool hears = whom_->slots().answers(process(), static_cast<std::size_t>(server), events().now());
    if (!hears || asked.stuck_until() > events().now()) return;
    const int view = asked.is_up() ? whom_->slots().view_of(server) : -1;
    events().after(way(), [this, server, view, number] {
      when_running([this, server, view, number] {
        if (number == round_ && is_asking_) hear(server, view);
      });
    });
  });
}

void map_watch::hear(int server, int view) {
  lines_[server] = {true, view};
  if (view >= 0) {
    for (const auto& primary : whom_->slots().answer(view).primaries) {
      const int other = slot_views::server_of(primary.where);
      if (lines_.try_emplace(other).second) ask(other);
    }
  }
  judge(false);
}

bool map_watch::all_are_done() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& one) { return one.second.is_done; });
}

slot_views::votes map_watch::as_if_all_said(int view) const {
  slot_views::votes votes;
  for (const auto& primary : whom_->slots().answer(view).primaries) {
    votes.emplace_back(slot_views::server_of(primary.where), view);
  }
  return votes;
}

void map_watch::judge(bool is_late) {
  slot_views::votes votes;
  for (const auto& [server, one] : lines_) {
    if (one.view >= 0) votes.emplace_back(server, one.view);
  }
  if (tell_.believes_anybody && !votes.empty()) votes = as_if_all_said(votes.front().second);
  const bool is_end = is_late || all_are_done();
  const auto round = votes.empty() ? nullptr : whom_->slots().named_by(votes);
  if (round && (is_end || round->covered() == engine::slot_count)) return end_round(round);
  if (is_end) end_round(nullptr);
}

void map_watch::end_round(const slot_views::map& named) {
  is_asking_ = false;
  if (named) {
    map_ = whom_->slots().merged(map_, named);
    is_confirmed_ = true;
    std::set<int> serving;
    for (std::size_t i = 0; i < map_->primaries.size(); ++i) {
      const auto index = static_cast<std::uint16_t>(i);
      if (std::find(map_->owner.begin(), map_->owner.end(), index) == map_->owner.end()) continue;
      serving.insert(slot_views::server_of(map_->primaries[i].where));
    }
    std::erase_if(lines_, [&](const auto& one) { return !serving.contains(one.first); });
    tell_.on_map(map_, began_at_);
  }
  for (const auto& tell : std::exchange(asking_for_, {})) tell();
  if (!is_asking_) wait_for_next();
}

}  // namespace holdfast::sim
