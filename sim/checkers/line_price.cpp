// SPDX-License-Identifier: Apache-2.0
// C7: what those cost who stand in line and are not there. Whose connection is gone is granted nothing; who is granted
// something has its claim window to take it, and not a moment more; who has not looked for so long that it counts as
// silent, or was told to stand by for a grant that nobody claimed and did not look, or is of the process that did not
// claim it, is granted nothing while somebody stands there who has; and who is dead by then is taken out of the line.
//
// idle_lock sees what nobody has. What is granted to somebody who never comes is had by him.
#include "checkers/checker.hpp"
#include "model_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace holdfast::sim {

namespace {

using namespace std::chrono_literals;

class line_price final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    if (!in().is_at_primary(run.lock)) return;
    auto& last = last_[run.lock];
    if (run.owner() == last.owner) last = {};  // It has come, or has left.
    // Another primary, or what is left of the data, knows nothing of it.
    if (in().excuse({cause::data_lost, cause::another_primary}, last.at, run.lock)) last = {};
    bool is_offered = false;
    for (const auto& h : run.after) {
      const auto place = place_of(run, h.owner);
      const bool is_new = std::none_of(run.before.begin(), run.before.end(),
                                       [&](const holder& b) { return b.owner == h.owner && b.token == h.token; });
      if (!is_new || place == run.line_before.end() || h.owner == run.owner()) continue;
      judge_gone(run, *place);
      judge_window(run, *place, h);
      judge_silence(run, *place, last);
      is_offered = true;
    }
    judge_dead(run);
    note_grants(run, last);
    if (is_offered) offered_at_us_[run.lock] = now_us(run);
  }

private:
  // docs/protocol.md: The line.
  static constexpr std::chrono::microseconds silent = 6s;
  static constexpr std::chrono::microseconds dead = 16500ms;
  static constexpr std::size_t stand_by = 2;
  // Behind a step of the server's clock heartbeats mean something again when whoever stands in line has looked.
  static constexpr duration settles = 10s;

  // What the line was granted last, to somebody who has not come.
  struct grant {
    std::string owner{};
    std::string channel{};  // Of its process.
    instant at{};
    std::int64_t at_us = 0;
    std::int64_t until_us = 0;
    std::map<std::string, std::int64_t> stand_by{};  // Who is to look when it lapses, and when.
  };
  using places = std::vector<line_place>;

  static places::const_iterator place_of(const script_run& run, const std::string& owner) {
    return std::find_if(run.line_before.begin(), run.line_before.end(),
                        [&](const line_place& p) { return p.owner == owner; });
  }
  static std::int64_t now_us(const script_run& run) { return run.at.time_since_epoch().count(); }
  static std::int64_t us(duration time) { return time / 1us; }

  bool is_there(const script_run& run, const line_place& one) const {
    return one.is_told && in().redis(run.lock).is_heard(one.channel);
  }

  // Whoever asks may leave with that, or say that it cannot be told by now.
  bool stands_by(const script_run& run, const line_place& one) const {
    if (one.owner != run.owner()) return is_there(run, one);
    const auto left = line_of(in().redis(run.lock), in().lock_of(run.lock));
    const auto now = std::find_if(left.begin(), left.end(), [&](const line_place& p) { return p.owner == one.owner; });
    return now != left.end() && is_there(run, *now);
  }

  void judge_gone(const script_run& run, const line_place& one) const {
    if (!is_there(run, one)) complain(run, one, "whom nobody can call");
  }

  void judge_window(const script_run& run, const line_place& one, const holder& granted) const {
    const auto lives = granted.expires_at - run.at.time_since_epoch();
    if (granted.expires_at >= 0us && lives <= one.window + 1ms) return;
    complain(run, one, fmt::format("for {} ms, and its claim window is {} ms", lives / 1ms, one.window / 1ms));
  }

  void judge_silence(const script_run& run, const line_place& one, const grant& last) const {
    if (has_another_clock(run.lock)) return;
    const std::chrono::microseconds silence{now_us(run) - one.looked_us};
    if (silence > dead) return complain(run, one, "who is dead");
    if (!has_somebody_fresh(run, one)) return;
    if (silence > silent) return complain(run, one, "who is silent");
    const bool lapsed = last.until_us != 0 && last.until_us <= now_us(run);
    if (!lapsed || last.stand_by.empty() || one.looked_us >= last.at_us) return;
    if (run.which != script::id::look && run.which != script::id::wait) return;  // No other asks who has stood by.
    const auto stands_by = last.stand_by.find(one.owner);
    if (one.channel == last.channel && now_us(run) > last.until_us + us(1ms)) {
      return complain(run, one, "whose process did not claim what it had");
    }
    const auto on_its_way = 101ms + std::max<std::chrono::milliseconds>(one.window - 1s, 0ms) / 4;
    if (stands_by == last.stand_by.end() || now_us(run) <= stands_by->second + us(on_its_way)) return;
    complain(run, one, "who did not look when it stood by");
  }

  // Whoever stands before the last of those who are granted something has been seen.
  void judge_dead(const script_run& run) const {
    const auto& all = run.line_before;
    const auto is_in = [](const std::vector<holder>& in, const line_place& p) {
      return std::any_of(in.begin(), in.end(), [&](const holder& h) { return h.owner == p.owner; });
    };
    const auto is_granted = [&](const line_place& p) { return is_in(run.after, p) && !is_in(run.before, p); };
    const auto last = std::find_if(all.rbegin(), all.rend(), is_granted);
    const auto is_dead = [&](const line_place& p) { return now_us(run) - p.looked_us > dead.count(); };
    if (std::none_of(last, all.rend(), is_dead) || has_another_clock(run.lock)) return;
    const auto left = line_of(in().redis(run.lock), in().lock_of(run.lock));
    for (const auto& p : left) {
      const bool was_seen = std::any_of(last, all.rend(), [&](const line_place& b) { return b.owner == p.owner; });
      if (!was_seen || !is_dead(p)) continue;
      in().complain("C7", fmt::format("lock {}: {} is dead, and stays in line", run.lock, p.label));
    }
  }

  bool has_another_clock(int lock) const {
    return in().excuse({cause::clock_stepped, cause::clock_rate}, in().now() - settles, lock) != nullptr;
  }

  // Whom it should have been instead: who looks just now, or has since the last grant, so that it was asked for
  // nothing.
  bool has_somebody_fresh(const script_run& run, const line_place& than) const {
    const auto offered = offered_at_us_.find(run.lock);
    const std::int64_t since = offered == offered_at_us_.end() ? 0 : offered->second;
    const bool is_look = run.which == script::id::look || run.which == script::id::look_counted;
    return std::any_of(run.line_before.begin(), run.line_before.end(), [&](const line_place& p) {
      if (p.owner == than.owner || p.permits > in().lock_of(run.lock).size) return false;
      if (p.wait_until_us != 0 && p.wait_until_us <= now_us(run)) return false;
      if (p.owner == run.owner()) return is_look;  // Who leaves stands there no more.
      const std::int64_t silence = now_us(run) - p.looked_us;
      return is_there(run, p) && silence >= 0 && silence <= silent.count() && p.looked_us > since;
    });
  }

  // The first two of other processes behind it, who hear it and have not given up by then; of two, if there are.
  void note_grants(const script_run& run, grant& last) const {
    if (in().lock_of(run.lock).kind != lock_kind::exclusive || run.after.size() != 1) return;
    const auto& h = run.after.front();
    const auto place = place_of(run, h.owner);
    const bool is_new = run.before.empty() || run.before.front().owner != h.owner;
    if (!is_new) return;
    last = {};
    if (place == run.line_before.end() || h.owner == run.owner()) return;
    last = {h.owner, place->channel, in().now(), now_us(run), h.expires_at.count()};
    const auto looks_at = [&] {
      return now_us(run) + us(place->window) + us(200ms) * static_cast<int>(last.stand_by.size() + 1);
    };
    const line_place* first = nullptr;
    const line_place* spare = nullptr;
    for (auto p = place + 1; p != run.line_before.end() && last.stand_by.size() < stand_by; ++p) {
      if (p->channel == place->channel || !stands_by(run, *p) || now_us(run) - p->looked_us > dead.count()) continue;
      if (p->wait_until_us != 0 && p->wait_until_us <= looks_at()) continue;
      if (first != nullptr && first->channel == p->channel) {
        if (spare == nullptr) spare = &*p;
        continue;
      }
      last.stand_by[p->owner] = looks_at();
      if (first == nullptr) first = &*p;
    }
    if (spare != nullptr && last.stand_by.size() < stand_by) last.stand_by[spare->owner] = looks_at();
  }

  void complain(const script_run& run, const line_place& one, std::string_view how) const {
    in().complain("C7", fmt::format("lock {}: {} of process {} grants it to {}, {}", run.lock,
                                    script::find(run.which).name, run.process, one.label, how));
  }

  std::map<int, grant> last_;                  // By lock; of an exclusive one.
  std::map<int, std::int64_t> offered_at_us_;  // By lock: the last grant to somebody who had not asked just then.
};

}  // namespace

std::unique_ptr<checker> make_line_price(surroundings& in) { return std::make_unique<line_price>(in); }

}  // namespace holdfast::sim
