// SPDX-License-Identifier: Apache-2.0
// C7: who waits is granted in the order in which the server queued it. Nobody may overtake a waiter whom nothing has
// befallen since it was queued; and who had to enter again gets its place back the first time. Who has less than two
// round trips left to wait does not come for its turn any more, and may be passed over.
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace holdfast::sim {

namespace {

class line_order final : public checker {
public:
  using checker::checker;

  void on_call_started(const call_record& call) override { comes_until_.emplace(call.label, comes_until(in(), call)); }
  void on_call_ended(const call_record& call) override { over_.insert(call.label); }

  void on_script(const script_run& run) override {
    if (run.which == script::id::wait || run.which == script::id::wait_counted) note_entry(run);
    if (run.which == script::id::look || run.which == script::id::look_counted) note_look(run);
    for (const auto& h : run.after) {
      const bool is_new =
          std::none_of(run.before.begin(), run.before.end(), [&](const holder& b) { return b.owner == h.owner; });
      if (is_new) judge(run, h.owner);
    }
  }

private:
  struct entry {
    std::string owner{};
    double ticket = 0;
    instant queued_at{};
    instant sent_at{};
    int comebacks = 0;
    bool knows_its_ticket = false;  // Only who has heard of its place looks. A reply that was lost told it nothing.
  };

  void note_entry(const script_run& run) {
    const auto given = ticket_given(run);
    if (!given) return;
    const double ticket = *given;
    auto& known = entries_[run.args[4]];
    // What was sent before the entry that it has says nothing of a place it lost: a connection that it gave up had it.
    if (run.sent_at < known.sent_at) return;
    known.sent_at = run.sent_at;
    if (known.owner == run.owner()) {
      known.ticket = ticket;  // It may have had its turn while its first reply was lost.
      return;
    }
    const bool came_back = !known.owner.empty() && known.knows_its_ticket && ++known.comebacks == 1;
    if (came_back && ticket > known.ticket && !in().excuse({cause::data_lost}, known.queued_at, run.lock)) {
      in().complain("C7", fmt::format("lock {}: {} came back and lost its place", run.lock, run.args[4]));
    }
    known.owner = run.owner();
    known.ticket = ticket;
    known.queued_at = in().now();
    known.knows_its_ticket = false;
  }

  void note_look(const script_run& run) {
    for (auto& [label, known] : entries_) {
      if (known.owner == run.owner()) known.knows_its_ticket = true;
    }
  }

  static constexpr double none = std::numeric_limits<double>::infinity();

  // Whoever missed its turn comes back with its ticket, and may be granted what it stands first for. Not with another.
  double ticket_brought(const script_run& run) const {
    if (run.which != script::id::wait && run.which != script::id::wait_counted) return none;
    const double ticket = std::strtod(run.args[10].c_str(), nullptr);
    const auto known = entries_.find(run.args[4]);
    return ticket > 0 && known != entries_.end() && known->second.ticket == ticket ? ticket : none;
  }

  void judge(const script_run& run, const std::string& granted) {
    double ticket = run.owner() == granted ? ticket_brought(run) : none;
    for (const auto& place : run.line_before) {
      if (place.owner == granted) ticket = place.ticket;
    }
    for (const auto& place : run.line_before) {
      if (place.ticket >= ticket || place.owner == granted || over_.contains(place.label)) continue;
      if (std::any_of(run.after.begin(), run.after.end(), [&](const holder& h) { return h.owner == place.owner; })) {
        continue;
      }
      if (place.wait_until_us != 0 && run.at.time_since_epoch().count() >= place.wait_until_us) continue;
      const auto comes_until = comes_until_.find(place.label);
      if (comes_until != comes_until_.end() && in().now() >= comes_until->second) continue;
      const auto queued = entries_.find(place.label);
      const int process = std::atoi(place.label.c_str() + 1);
      if (queued == entries_.end() || in().healthy_since(process) > queued->second.queued_at) continue;
      if (queued->second.owner != place.owner)
        continue;  // It has come anew, and the server has not forgotten this one.
      in().complain("C7", fmt::format("lock {}: {} was overtaken in line by {:.8}", run.lock, place.label, granted));
    }
  }

  std::set<std::string> over_;
  std::map<std::string, instant> comes_until_;  // By label.
  std::map<std::string, entry> entries_;        // By label.
};

}  // namespace

// {7, now, ticket, ...}
std::optional<double> ticket_given(const script_run& run) {
  const auto* parts = run.reply->as_array();
  if (!parts || parts->size() < 3 || !(*parts)[0].as_integer() || *(*parts)[0].as_integer() != 7) return std::nullopt;
  return std::strtod((*parts)[2].as_bulk()->c_str(), nullptr);
}

std::unique_ptr<checker> make_line_order(surroundings& in) { return std::make_unique<line_order>(in); }

}  // namespace holdfast::sim
