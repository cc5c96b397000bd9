// SPDX-License-Identifier: Apache-2.0
// C7: a lock that nobody has does not stay free while somebody waits for it, and what is left of a semaphore or beside
// readers not while it is enough for the first in line. A script's run shows since when it was so: its leases have
// ends. Of whoever is granted the first two in line are told when that ends, and so is whoever asks and is one of them;
// so a wake-up that is lost shows, although the next heartbeat would make up for it. Who came to their place since, or
// stands behind somebody whom nothing can call, or was befallen while it stood there, may have to wait for a heartbeat
// (docs/protocol.md).
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sim {

namespace {

using namespace std::chrono_literals;

// Whoever stands by for a grant that nobody claims looks 400 ms behind its end; where a message was refused a while
// ago, the second in line looks every 550 ms. And clocks drift.
constexpr duration soon = 600ms;
constexpr std::size_t are_told = 2;
// A heartbeat, and until whoever cannot be called is taken for dead.
constexpr duration heartbeat = 7s;

class idle_lock final : public checker {
public:
  using checker::checker;

  void on_call_started(const call_record& call) override { comes_until_[call.label] = comes_until(in(), call); }
  void on_call_ended(const call_record& call) override { comes_until_.erase(call.label); }

  void on_script(const script_run& run) override {
    if (!in().is_at_primary(run.lock)) return;
    auto& of = seen_[run.lock];
    // What was seen by another clock says nothing by this one.
    if (in().excuse({cause::clock_stepped, cause::clock_rate}, of.seen_at, run.lock)) of = {};
    of.seen_at = in().now();
    if (is_in_quarantine(run)) quarantined_at_[run.owner()] = in().now();
    note_line(run, of);
    note_room(run, of);
    judge(run, of);
    note_end(run, of);
  }

private:
  // Until who stood in line when the server's clock stepped has looked again, and whoever it took for silent or gone
  // has come back, or is out of the line.
  static constexpr duration settles = 30s;

  // What the last run that there was of each lock's scripts has left.
  struct seen {
    std::vector<holder> left{};
    bool is_known = false;  // Of a key that is none of ours nobody knows when it ends.
    server_time at{};
    instant seen_at{};
    bool has_granted = false;
    bool has_called = false;          // Two were told to stand by for that.
    std::string granted_to{};         // The channel of the process, if it granted to one in line alone.
    server_time offered_until{};      // When whoever was told to stand by is to look.
    std::string asked{};              // Who asked for its place.
    std::set<std::string> watches{};  // Who was told when a lease ends.
    std::set<std::string> unheard{};  // The channels on which nobody was.
    std::string first{};
    std::optional<server_time> free_since{};
    std::optional<server_time> room_since{};  // For the first in line.
  };

  // Whoever asks for its place believes so.
  static bool is_in_quarantine(const script_run& run) {
    const std::size_t told = run.which == script::id::wait || run.which == script::id::wait_counted ? 7 : 4;
    return is_place(run.which) && run.args.size() > told && run.args[told].size() > 1;
  }

  // Two are told to stand by, of two processes if there are. Nobody of the process of who was granted something, if
  // that is one alone: it would not come for them either. Nor whoever gives up before that, or is gone.
  void note_line(const script_run& run, seen& of) {
    const line_place* first = nullptr;
    const line_place* second = nullptr;
    for (std::size_t rank = 0; rank < run.line_before.size(); ++rank) {
      const auto& place = run.line_before[rank];
      if (rank < are_told && of.asked == place.owner) of.watches.insert(place.owner);
      if (!of.has_called || of.granted_to == place.channel) continue;
      if (gives_up_before(place, of) || of.unheard.contains(place.channel)) continue;
      if (first == nullptr) {
        first = &place;
      } else if (second == nullptr || (second->channel == first->channel && place.channel != first->channel)) {
        second = &place;
      }
    }
    if (first != nullptr) of.watches.insert(first->owner);
    if (second != nullptr) of.watches.insert(second->owner);
  }

  // Who gives up a little later is not told either. It counts as one who is; soon it waits no more.
  static bool gives_up_before(const line_place& place, const seen& of) {
    return place.wait_until_us != 0 && server_time{std::chrono::microseconds{place.wait_until_us}} <= of.offered_until;
  }

  void note_room(const script_run& run, seen& of) {
    const int size = size_of(run.lock);
    of.free_since = since_when(of, run.at, 0, of.free_since);
    if (run.line_before.empty() || run.line_before.front().owner != of.first) of.room_since.reset();
    of.first = run.line_before.empty() ? std::string{} : run.line_before.front().owner;
    if (!of.first.empty())
      of.room_since = since_when(of, run.at, size - run.line_before.front().permits, of.room_since);
  }

  // As the server has it: a resize may be lost with the primary that was told of it (seed 2005439 with replicas).
  int size_of(int lock) {
    const auto& what = in().lock_of(lock);
    const auto* fence = in().redis(lock).peek_as<std::string>(what.keys.fence());
    const auto at = what.kind == lock_kind::semaphore && fence ? fence->rfind("|s") : std::string::npos;
    return at == std::string::npos ? what.size : std::atoi(fence->c_str() + at + 2);
  }

  // That at most so many permits are in use, as of now. `before`: as of the run before.
  static std::optional<server_time> since_when(const seen& of, server_time now, int most,
                                               std::optional<server_time> before) {
    if (!of.is_known || most < 0) return std::nullopt;
    auto left = of.left;
    std::sort(left.begin(), left.end(), [](const holder& a, const holder& b) { return end_of(a) < end_of(b); });
    int used = 0;
    for (const auto& h : left) used += h.permits;
    if (used <= most) return before.value_or(of.at);
    for (const auto& h : left) {
      used -= h.permits;
      if (end_of(h) > now) return std::nullopt;
      if (used <= most) return std::max(of.at, end_of(h));
    }
    return std::nullopt;
  }
  static server_time end_of(const holder& h) {
    if (h.expires_at < 0us) return server_time::max();
    return server_time{std::chrono::duration_cast<server_time::duration>(h.expires_at)};
  }

  void note_end(const script_run& run, seen& of) {
    const auto is_new = [&](const holder& h) {
      return std::none_of(run.before.begin(), run.before.end(), [&](const holder& b) { return b.owner == h.owner; });
    };
    of.left = run.after;
    of.is_known = !run.after.empty() || in().redis(run.lock).peek(in().lock_of(run.lock).keys.holder) == nullptr;
    of.at = run.at;
    of.has_granted = std::any_of(run.after.begin(), run.after.end(), is_new);
    of.granted_to.clear();
    // Who takes it itself is there. Then others look when the lease before it ends, of one that nobody else has.
    of.has_called = of.has_granted && run.after.size() == 1;
    int grants = 0;
    for (const auto& place : run.line_before) {
      const auto is_place_of = [&](const holder& h) { return h.owner == place.owner; };
      const auto granted = std::find_if(run.after.begin(), run.after.end(), is_place_of);
      if (granted == run.after.end()) continue;
      of.granted_to = ++grants == 1 ? place.channel : std::string{};
      if (place.owner == run.owner()) continue;
      of.offered_until = end_of(*granted);
      of.has_called = of.has_granted;
    }
    of.asked = is_place(run.which) ? run.owner() : std::string{};
    if (is_place(run.which)) asked_at_[run.owner()] = in().now();
    if (is_place(run.which) && ticket_given(run)) {
      stands_since_.emplace(run.owner(), in().now());
      // It has looked for what it was told to: a grant, which was claimed.
      if (of.offered_until <= run.at) of.watches.erase(run.owner());
    }
    if (!of.has_granted) return;
    of.watches.clear();
    of.unheard.clear();
    for (const auto& place : run.line_before) {
      if (!in().redis(run.lock).is_heard(place.channel)) of.unheard.insert(place.channel);
    }
  }
  static bool is_place(script::id which) {
    return which == script::id::wait || which == script::id::wait_counted || which == script::id::look ||
           which == script::id::look_counted;
  }

  void judge(const script_run& run, const seen& of) {
    if (in().excuse({cause::clock_stepped, cause::clock_rate}, in().now() - settles, run.lock)) return;
    bool all_can_be_called = true;
    instant silent_since{};  // Who cannot be called and has died is passed over when it has not asked for a while.
    for (const auto& place : run.line_before) {
      all_can_be_called = all_can_be_called && place.is_told;
      const int process = std::atoi(place.label.c_str() + 1);
      if (!place.is_told && !in().is_running(process)) silent_since = std::max(silent_since, asked_at_[place.owner]);
      const auto& since = place.owner == of.first ? of.room_since : of.free_since;
      const auto comes_until = comes_until_.find(place.label);
      const auto stands_since = stands_since_.find(place.owner);
      if (!since || comes_until == comes_until_.end() || stands_since == stands_since_.end()) continue;
      const instant well_since = in().healthy_since(process);
      if (!in().is_running(process) || well_since > in().now()) continue;
      const bool is_told = all_can_be_called && of.watches.contains(place.owner) && well_since <= stands_since->second;
      const auto counts_since = is_told ? std::max(*since, of.offered_until) : *since;
      if (counts_since > run.at) continue;
      const instant free_since = in().now() - std::chrono::duration_cast<duration>(run.at - counts_since);
      const instant waits_since = std::max({free_since, stands_since->second, well_since, silent_since,
                                            quarantined_at_[place.owner], in().quarantined_until(run.lock)});
      const duration waits = std::min(in().now(), comes_until->second) - waits_since;
      if (waits <= (is_told ? soon : heartbeat) + 2 * in().slowest_round_trip(process)) continue;
      return in().complain(
          "C7", fmt::format("lock {}: it was free for {} ms, and {} waited", run.lock, waits / 1ms, place.label));
    }
  }

  std::map<std::string, instant> comes_until_;   // By label; of calls that are not over.
  std::map<std::string, instant> stands_since_;  // In line, by owner.
  // Likewise: when it last asked for its place; and when in a quarantine.
  std::map<std::string, instant> asked_at_;
  std::map<std::string, instant> quarantined_at_;
  std::map<int, seen> seen_;  // By lock.
};

}  // namespace

std::unique_ptr<checker> make_idle_lock(surroundings& in) { return std::make_unique<idle_lock>(in); }

}  // namespace holdfast::sim
