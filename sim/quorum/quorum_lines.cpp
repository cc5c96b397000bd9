// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_lines.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

quorum_lines::quorum_lines(event_queue& events, std::vector<network*> nets, settings what, hooks tell)
    : events_{&events}, nets_{std::move(nets)}, what_{std::move(what)}, tell_{std::move(tell)}, clients_(nets_.size()) {
  for (const auto& one : what_.of->locks) {
    std::error_code ignored;
    const auto name = script::name_of_holder_key(one.keys.holder, "hf:");
    const auto parsed = lock_name::parse(*name, naming::holdfast, ignored);
    locks_.push_back({one.number, lock_kind::exclusive, 1, script::keys_of(*parsed, "hf:turn:", false)});
  }
}

process& quorum_lines::of(std::size_t node) {
  auto& made = clients_[node];
  if (made) return *made;
  process::hooks h;
  h.on_call_started = [](const call_record&) {};
  h.on_call_ended = [](const call_record&) {};
  h.on_hold = [](const hold&) {};
  h.on_extended = [](const hold&) {};
  h.on_at_risk = [](const hold&) {};
  h.on_late_answer = [] {};
  h.on_hold_ended = [](const hold&, hold_end) {};
  h.on_validity = [](const hold&, bool) {};
  h.on_released = [](const hold&, release_outcome) {};
  h.on_narrowed = [](const hold&) {};
  h.on_downgraded = [](const hold&, downgrade_end) {};
  h.on_step = [](int) {};
  h.on_down = [this, node] { tell_.on_down(node); };
  h.on_spin = tell_.on_spin;
  h.is_planted = [](canary_switch) { return false; };
  h.next_number = [this] { return ++last_number_; };
  process_settings how{what_.number, what_.how.clock_ppm, std::min<duration>(what_.how.timeout, 2s),
                       seeded_random{what_.rng.next()}, what_.of->max_ttl};
  how.prefix = "hf:turn:";
  how.is_quarantined = false;
  how.has_alternative = what_.has_alternative;
  made = std::make_unique<process>(*events_, *nets_[node], locks_, std::move(how), std::move(h));
  return *made;
}

void quorum_lines::pause() {
  for (const auto& one : clients_) {
    if (one) one->pause();
  }
}

void quorum_lines::resume() {
  for (const auto& one : clients_) {
    if (one) one->resume();
  }
}

void quorum_lines::die(process::death how) {
  for (const auto& one : clients_) {
    if (one) one->die(how);
  }
}

bool quorum_lines::is_idle() const {
  return std::all_of(clients_.begin(), clients_.end(), [](const auto& one) { return !one || one->is_idle(); });
}

std::vector<int> quorum_lines::connections_to(std::size_t node) const {
  std::vector<int> all;
  if (!clients_[node]) return all;
  for (const int id : {clients_[node]->commands_id(), clients_[node]->hints_id()}) {
    if (id != 0) all.push_back(id);
  }
  return all;
}

}  // namespace holdfast::sim
