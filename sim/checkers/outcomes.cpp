// SPDX-License-Identifier: Apache-2.0
// C5: the outcome of an acquire is the truth. Acquired: the server granted that token to that owner. Busy: somebody had
// it, or stood before. Timed out, cancelled or not applied, as busy: nothing of it ever takes effect, and no request of
// it is unanswered. Unknown: no orphan outlives the request's own deadline plus the ttl, while the server's clock does
// not step back, and its process runs. Whose process died or is paused before it
// could leave the line is a dead waiter there, which may cost the next one a claim window whenever its turn comes (C7).
// And the outcome of a release: what was released is not there any more, and what its own leave took away first is not
// "already lost". And of a downgrade: who was told that it reads is a reader on the server, from then on; who was told
// that it is gone has nothing there.
#include "checkers/checker.hpp"
#include "model_server.hpp"

#include "script/reply.hpp"

#include <holdfast/observer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace holdfast::sim {

namespace {

class outcomes final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    if (run.args.size() > 4 && is_entry(run.which)) {
      calls_of_[run.owner()] = run.args[4];
      for (const auto& place : line_of(in().redis(run.lock), in().lock_of(run.lock))) queued_.insert(place.label);
    }
    if (is_own(run)) note_own(run);
    for (const auto& h : run.before) {
      const bool is_left = run.which == script::id::leave || run.which == script::id::leave_counted;
      if (is_left && h.owner == run.owner()) left_.insert({h.owner, h.token});
    }
    for (const auto& h : run.after) {
      require_reader(run.lock, h);
      const auto is_same = [&](const holder& b) { return b.owner == h.owner && b.token == h.token; };
      if (std::any_of(run.before.begin(), run.before.end(), is_same)) continue;
      granted_.insert({h.owner, h.token});
      const auto over = without_effect_.find(label_of(h.owner));
      if (over == without_effect_.end()) continue;
      in().complain("C5", fmt::format("lock {}: call {} had ended as {}, and was granted token {}", run.lock,
                                      over->first, over->second, h.token));
    }
  }

  void on_hold(const hold& one) override {
    if (granted_.contains({one.owner, fmt::format("{:016}", one.grant)})) return;
    in().complain("C5", fmt::format("lock {}: process {} believes in token {}, which was never granted to it", one.lock,
                                    one.process, one.token));
  }

  void on_hold_ended(const hold& one, hold_end how) override {
    if (how == hold_end::lost || how == hold_end::held_too_long) lost_.insert(one.owner);
  }

  void on_released(const hold& one, int outcome) override {
    if (outcome == static_cast<int>(release_outcome::released)) require_gone(one);
    if (outcome != static_cast<int>(release_outcome::already_lost) || lost_.contains(one.owner)) return;
    if (!left_.contains({one.owner, fmt::format("{:016}", one.grant)})) return;
    in().complain("C5",
                  fmt::format("lock {}: process {} was told that token {} was lost, which its own leave gave back",
                              one.lock, one.process, one.token));
  }

  void on_downgraded(const hold& one, downgrade_end how) override {
    if (how == downgrade_end::unknown) return;
    if (how == downgrade_end::reads) readers_.insert({{one.owner, fmt::format("{:016}", one.token)}, one.got_at});
    for (const auto& h : holders_of(in().redis(one.lock), in().lock_of(one.lock))) {
      if (how == downgrade_end::reads) require_reader(one.lock, h);
      if (how == downgrade_end::gone && h.owner == one.owner && h.token == fmt::format("{:016}", one.token)) {
        if (in().excuse({cause::clock_stepped, cause::clock_rate, cause::data_lost}, one.got_at, one.lock)) continue;
        in().complain("C5",
                      fmt::format("lock {}: process {} was told by its downgrade that token {} is gone, and has it",
                                  one.lock, one.process, one.token));
      }
    }
  }

  void on_call_ended(const call_record& call) override {
    if (call.end == call_end::acquired) return;
    if (call.end != call_end::unknown) {
      answered_[call.label] = to_string(call.end);
      const bool is_all = !call.may_have_copies && !queued_.contains(call.label);
      if (is_all) without_effect_[call.label] = to_string(call.end);
      require_nothing(call, is_all);
      if (is_all && !holds(call)) return;
    }
    // Estimates of the server's clock may be as old as the world; and Redis rounds to milliseconds.
    in().at(in().now() + allowed(call), [this, call] { judge(call); });
  }

private:
  static bool is_entry(script::id which) {
    return which == script::id::acquire || which == script::id::wait || which == script::id::wait_counted;
  }
  static const char* to_string(call_end how) {
    switch (how) {
      case call_end::busy: return "busy";
      case call_end::timed_out: return "timed out";
      case call_end::cancelled: return "cancelled";
      default: return "not applied";
    }
  }
  // A request of an acquire that still waits for its answer.
  static bool is_own(const script_run& run) {
    const bool is_look = run.which == script::id::look || run.which == script::id::look_counted;
    return (is_entry(run.which) || is_look) && run.process != nobody && !run.is_given_up;
  }

  void note_own(const script_run& run) {
    const auto over = answered_.find(label_of(run.owner()));
    if (over != answered_.end()) {
      in().complain("C5", fmt::format("lock {}: call {} had ended as {}, and a request of it was unanswered", run.lock,
                                      over->first, over->second));
    }
    for (const auto& h : run.after) {
      if (h.owner != run.owner()) continue;
      const auto was = std::find_if(run.before.begin(), run.before.end(),
                                    [&](const holder& b) { return b.owner == h.owner && b.token == h.token; });
      if (was == run.before.end() || was->expires_at < h.expires_at) taken_.insert({h.owner, h.token});
    }
    const auto reply = script::parse_acquire(*run.reply);
    if (!reply || !std::holds_alternative<script::busy>(reply->what)) return;
    if (!run.before.empty() || !run.line_before.empty()) return;
    if (in().redis(run.lock).peek(in().lock_of(run.lock).keys.holder)) return;  // Of another program.
    // Half of somebody may be there.
    if (in().excuse({cause::data_lost, cause::keys_deleted}, instant{}, run.lock)) return;
    in().complain("C5", fmt::format("lock {}: call {} is told busy, and nobody holds it or waits for it", run.lock,
                                    label_of(run.owner())));
  }

  // `is_all`: also nothing of what the line granted, and of copies on their way.
  void require_nothing(const call_record& call, bool is_all) {
    for (const auto& h : holders_of(in().redis(call.lock), in().lock_of(call.lock))) {
      if (label_of(h.owner) != call.label || (!is_all && !taken_.contains({h.owner, h.token}))) continue;
      // What was given back to a primary, its successor may have: an orphan, which is gone before the quarantine is.
      // And what too few replicas have is given back; not all of it, when half of it was deleted.
      // What a server was granted before it lost that may come back with an older file.
      const bool is_excused = in().excuse({cause::another_primary}, call.started_at, call.lock) ||
                              (!is_all && in().excuse({cause::data_lost}, call.started_at, call.lock)) ||
                              (call.is_durable && in().excuse({cause::keys_deleted}, call.started_at, call.lock));
      if (is_excused) return;
      in().complain("C5", fmt::format("call {} ended as {}, and holds the lock", call.label, to_string(call.end)));
    }
  }
  std::string label_of(const std::string& owner) const {
    const auto found = calls_of_.find(owner);
    return found == calls_of_.end() ? std::string{} : found->second;
  }

  void require_gone(const hold& one) {
    for (const auto& h : holders_of(in().redis(one.lock), in().lock_of(one.lock))) {
      if (h.owner != one.owner || h.token != fmt::format("{:016}", one.grant)) continue;
      if (in().excuse({cause::data_lost, cause::another_primary}, one.got_at, one.lock)) return;
      in().complain("C5", fmt::format("lock {}: process {} was told that token {} is released, and has it", one.lock,
                                      one.process, one.token));
    }
  }

  void require_reader(int lock, const holder& one) {
    const auto found = readers_.find({one.owner, one.token});
    if (found == readers_.end() || one.permits == 1) return;
    if (in().excuse({cause::data_lost}, found->second, lock)) return;
    in().complain("C5", fmt::format("lock {}: token {} was made a reader's, and is a writer's", lock, one.token));
  }

  // Estimates of the server's clock may be as old as the world; and Redis rounds to milliseconds.
  duration allowed(const call_record& call) const {
    return call.timeout + call.ttl + std::chrono::milliseconds{200} + in().now().time_since_epoch() / 64;
  }

  bool may_not_have_left(const call_record& call) const {
    return queued_.contains(call.label) &&
           (!in().is_running(call.process) || in().healthy_since(call.process) + allowed(call) > in().now());
  }

  bool holds(const call_record& call) const {
    const auto now = std::chrono::floor<std::chrono::milliseconds>(in().server_now(call.lock).time_since_epoch());
    const auto& keys = in().lock_of(call.lock).keys;
    if (const auto* text = in().redis(call.lock).peek_as<std::string>(keys.holder)) {
      return text->size() > 36 && label_of(text->substr(3, 32)) == call.label;
    }
    const auto* set = in().redis(call.lock).peek_as<model_redis::sorted_set>(keys.holder);
    if (!set) return false;
    return std::any_of(set->scores.begin(), set->scores.end(), [&](const auto& member) {
      return member.second > static_cast<double>(now.count()) * 1000 && label_of(member.first) == call.label;
    });
  }

  void judge(const call_record& call) {
    if (!holds(call)) return;
    if (may_not_have_left(call)) {
      return in().at(in().now() + std::chrono::seconds{1}, [this, call] { judge(call); });
    }
    const auto since = call.started_at - std::chrono::minutes{5};
    if (in().excuse({cause::clock_stepped, cause::clock_rate, cause::data_lost}, since, call.lock)) return;
    in().complain("C5", fmt::format("lock {}: call {} ended without a lease, and its orphan outlives its deadline and "
                                    "its ttl",
                                    call.lock, call.label));
  }

  std::map<std::string, std::string> calls_of_;  // Label by owner id.
  std::set<std::pair<std::string, std::string>> granted_;
  std::set<std::pair<std::string, std::string>> left_;              // By a leave while they held it.
  std::map<std::pair<std::string, std::string>, instant> readers_;  // By downgrade: since when they hold it.
  std::set<std::string> lost_;                                      // Owner ids of whose loss the program was told.
  std::set<std::string> queued_;                                    // Labels of who ever stood in line.
  // Grants to who asked by a request of its own, and awaited the answer. Not the owner id alone: a copy of that request
  // that comes when the grant is over brings it into the line (seed 49663958).
  std::set<std::pair<std::string, std::string>> taken_;
  std::map<std::string, const char*> answered_;  // How those ended of which no request was unanswered, by label.
  std::map<std::string, const char*> without_effect_;
};

}  // namespace

std::unique_ptr<checker> make_outcomes(surroundings& in) { return std::make_unique<outcomes>(in); }

}  // namespace holdfast::sim
