// SPDX-License-Identifier: Apache-2.0
// The keeper's task for what is held: renews it, moves its deadline, calls it lost, and tells those who asked.
#pragma once

#include "core/lease_keeper.hpp"
#include "engine/keeper_task.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::engine {

// One lease, or several that are kept as one. Each of them has its own request and its own answer in a renewal.
class keeper::renewing final : public task {
public:
  renewing(keeper& of, leases several, time_point renewed_from, core::lease_keeper plan)
      : task{of}, ttl_{several.front()->ttl}, plan_{plan}, oldest_{renewed_from}, at_oldest_{several.size()} {
    for (auto& lease : several) parts_.emplace_back(*this, std::move(lease), renewed_from);
    ++of.ttls_[ttl_];
    of.mind_silence();
  }

  ~renewing() override {
    const auto alike = of().ttls_.find(ttl_);
    if (--alike->second == 0) of().ttls_.erase(alike);
    of().mind_silence();
    for (const auto& one : std::exchange(wishes_, {})) one.whose->on_end(errc::empty_handle);  // It was let go.
  }
  renewing(const renewing&) = delete;
  renewing& operator=(const renewing&) = delete;

  void run(time_point now) override {
    if (parts_.front().lease->fallen() != errc{}) return fall();
    if (plan_.stands(now)) give_up_wishes(now);
    const auto what = plan_.on_wake(now, of().channel_.is_ready());
    if (what.lost) return lose(*what.lost);
    if (what.at_risk) {  // Not else: each answer comes by here, and there may be thousands of parts.
      for (const auto& p : parts_) of().listener_->on_at_risk(p.lease);
    }
    if (what.renew) send(now);
    if (what.connect) of().is_waiting_for_connection_ = true;
    time_point wake_at = what.wake_at;
    for (const auto& one : wishes_) wake_at = std::min(wake_at, one.give_up_at);
    of().schedule(*this, wake_at);
  }

  void on_ready(time_point now) override {
    plan_.on_connected(now);
    run(now);
  }

  // Not only when the next renewal is due: another connection may take as long as the first.
  void on_down(time_point now) override { of().schedule(*this, now); }

  // When the reason is another one, because a hundred thousand may wait.
  void on_unsent(errc why) override {
    if (!plan_.waits_for_connection() || std::exchange(unsent_for_, why) == why) return;
    for (const auto& p : parts_) of().listener_->on_renew_failed(p.lease, why);
  }

  void add(time_point now, time_point give_up_at, std::shared_ptr<renewal_wish> whose) {
    of().schedule(*this, now);  // First: without memory nothing is left of the wish.
    wishes_.push_back({std::move(whose), now, give_up_at});
    plan_.ask(now);
  }

  void verify(time_point now) {
    plan_.hurry(now);
    of().schedule(*this, now);
  }

  // All that another keeper needs to go on with it.
  departing depart(time_point now) {
    plan_.on_failed(now, of().jitter_);  // What is unanswered is not heard of.
    departing out;
    for (const auto& p : parts_) {
      out.several.push_back(p.lease);
      out.renewed_from = std::min(out.renewed_from, p.renewed_from);
    }
    out.plan = plan_;
    for (auto& one : std::exchange(wishes_, {})) {
      out.wishes.push_back({std::move(one.whose), one.asked_at, one.give_up_at, one.is_sent});
    }
    return out;
  }
  // Before it is first run.
  void take_over(time_point now, std::vector<departing::wish> wishes) {
    for (auto& one : wishes) {
      wishes_.push_back({std::move(one.whose), one.asked_at, one.give_up_at, one.was_sent, one.was_sent});
    }
    plan_.on_connected(now);
  }
  bool is_about(const std::function<bool(const script::lock_keys&)>& keys) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const part& p) { return keys(p.lease->keys); });
  }

  bool is_of(std::string_view owner) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const part& p) { return p.lease->owner.hex() == owner; });
  }
  // It ends: a server that forgot what it did may call it again.
  void remember() const {
    for (const auto& p : parts_)
      if (p.lease->was_in_line) of().remember(p.lease->keys, p.lease->owner, p.lease->grant);
  }

  void cancel(const renewal_wish& whose) {
    end_wishes([&](const wish& one) { return one.whose.get() == &whose; },
               [](const wish& one) { return one.is_sent ? errc::cancelled_in_flight : errc::cancelled; });
  }

private:
  struct wish {
    std::shared_ptr<renewal_wish> whose;
    time_point asked_at;
    time_point give_up_at;
    bool is_sent = false;
    bool is_cut = false;            // An answer was lost: the server may have renewed it.
    std::optional<errc> refusal{};  // Of the last that was sent.
  };

  struct part final : reply_sink {
    part(renewing& r, std::shared_ptr<held_lease> l, time_point from)
        : whole{&r}, lease{std::move(l)}, renewed_from{from} {}
    ~part() { whole->of().channel_.forget(*this); }
    part(const part&) = delete;
    part& operator=(const part&) = delete;

    void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
      whole->on_reply(*this, now, sent_at, reply);
    }
    void on_cut(time_point now) override {
      for (auto& one : whole->wishes_) one.is_cut = one.is_cut || one.is_sent;
      whole->fail(*this, now, whole->of().channel_.last_failure().code);
    }

    renewing* whole;
    std::shared_ptr<held_lease> lease;
    time_point renewed_from;
  };

  void send(time_point now) {
    // A server that is slow, and not silent, answers in order: a third behind two would only make it slower.
    constexpr int most_in_flight = 2;
    const bool is_enough = std::any_of(parts_.begin(), parts_.end(),
                                       [](const part& p) { return channel::open_requests(p) >= most_in_flight; });
    if (is_enough) return;
    has_failed_ = false;
    unsent_for_ = {};
    for (auto& one : wishes_) {
      one.is_sent = true;
      if (std::exchange(one.refusal, std::nullopt)) one.whose->on_refusal({});
    }
    for (auto& p : parts_) of().channel_.send(now, p.lease->renewal_command(), p);
  }

  void on_reply(part& to, time_point now, time_point sent_at, const resp::value& reply) {
    if (const auto* error = reply.as_error()) {
      channel& from = of().channel_;
      const auto what = from.judge(error->text);
      const bool is_for_good =
          script::ends_a_call(what.what) || (what.what == script::reaction::elsewhere && !from.is_in_cluster());
      if (is_for_good || channel::open_requests(to) == 0) refuse_wishes(what.code, error->text);
      if (is_for_good) {
        end_wishes([](const wish& one) { return one.is_sent; }, [&](const wish&) { return what.code; });
      }
      fail(to, now, what.code);  // May end our own life.
      if (what.what == script::reaction::reconnect) from.hang_up(now, {what.code, error->text, false, false});
      return;
    }
    const auto parsed = script::parse_renew(reply);
    if (!parsed) return fail(to, now, errc::unexpected_reply);
    of().channel_.observe_clock(parsed->now, sent_at, now);
    switch (parsed->what) {
      case script::renew_answer::renewed:
        if (is_replicated(to, now)) renewed(to, now, sent_at);
        return;
      case script::renew_answer::other_quorum:  // Nobody else has it: the server is of another list of servers now.
      case script::renew_answer::gone: return refuse(to, now, errc::lease_gone);
      case script::renew_answer::taken: return refuse(to, now, errc::lease_taken);
      case script::renew_answer::broken: return refuse(to, now, errc::lease_broken);
    }
  }

  // What passes, and is said of one request, is not said of another one that is under way (C5).
  void refuse_wishes(errc code, const std::string& text) {
    for (auto& one : wishes_) {
      one.refusal = code;
      one.whose->on_refusal(text);
    }
  }

  // Too few replicas have it, or nobody knows: then the renewal did not happen, and is tried again. It is no loss, or a
  // hiccup of the replicas would free a lock in the middle of its work (P13b).
  bool is_replicated(part& one, time_point now) {
    const confirmation& said = of().channel_.confirmed();
    if (said.what == confirmation::word::not_needed || said.what == confirmation::word::enough) return true;
    const errc code = said.what == confirmation::word::refused ? said.code : errc::not_replicated;
    const bool is_for_good = said.what == confirmation::word::refused && !said.passes;
    if (is_for_good || channel::open_requests(one) == 0) refuse_wishes(code, said.text);
    if (is_for_good) {
      end_wishes([](const wish& w) { return w.is_sent; }, [&](const wish&) { return code; });
    }
    fail(one, now, code);  // May end our own life.
    return false;
  }

  // Holds from the instant from which all of them are renewed.
  void renewed(part& one, time_point now, time_point sent_at) {
    if (one.lease->fallen() != errc{}) return fall();  // Meanwhile.
    const time_point counts_from = of().renewals_from(*one.lease, now);
    if (sent_at < counts_from) {
      plan_.on_early(counts_from);
      for (auto& w : wishes_) {
        if (!w.is_sent || w.asked_at > sent_at) continue;
        w.refusal = errc::reply_lost;  // It is done there, and of no use yet.
        w.whose->on_refusal("it is renewed there, which counts only a while after the move");
      }
      return run(now);
    }
    note_renewed(one, sent_at);
    const duration margin = plan_.deadline() - now;
    if (plan_.on_renewed(now, oldest_, of().jitter_, of().channel_.counts_until())) {
      for (auto& p : parts_) {
        // A reader saw the old deadline pass and was told "not valid": that stands.
        if (!p.lease->deadline.extend(now, plan_.deadline())) return refuse(p, now, errc::lease_expired);
      }
      for (const auto& p : parts_) of().listener_->on_renewed(p.lease, margin);
    }
    if (plan_.stands(now)) {
      end_wishes([&](const wish& w) { return w.asked_at <= oldest_; }, [](const wish&) { return errc{}; });
    }
    // Those that came while two were under way: there is room now.
    if (std::any_of(wishes_.begin(), wishes_.end(), [](const wish& w) { return !w.is_sent; })) plan_.ask(now);
    run(now);
  }

  // They are looked through when the last of the oldest is renewed, which is once for each renewal of them all.
  void note_renewed(part& one, time_point sent_at) {
    if (sent_at <= one.renewed_from) return;
    const bool was_oldest = std::exchange(one.renewed_from, sent_at) == oldest_;
    if (!was_oldest || --at_oldest_ > 0) return;
    oldest_ = never;
    for (const auto& p : parts_) {
      if (p.renewed_from > oldest_) continue;
      at_oldest_ = p.renewed_from == oldest_ ? at_oldest_ + 1 : 1;
      oldest_ = p.renewed_from;
    }
  }

  void refuse(const part& one, time_point now, errc reason) {
    refused_ = &one;
    plan_.on_refused(reason);
    run(now);
  }

  void fail(part& one, time_point now, errc reason) {
    // One cut fails all that was sent with it, and is one failure.
    if (!std::exchange(has_failed_, true)) plan_.on_failed(now, of().jitter_);
    if (reason == errc::not_replicated && channel::open_requests(one) == 0) {
      // Who has no time for another answer is told while this one is the last: after the next sending it is unknown.
      const time_point next_answer_at = plan_.next_send_at() + of().channel_.wait_timeout();
      end_wishes([&](const wish& w) { return w.is_sent && next_answer_at >= w.give_up_at; },
                 [&](const wish&) { return reason; });
    }
    of().listener_->on_renew_failed(one.lease, reason);
    run(now);
  }

  void lose(errc reason) {
    leases lost;
    for (auto& p : parts_) {
      if (!refused_ || refused_ == &p) lost.push_back(p.lease);
    }
    for (const auto& lease : lost) lease->lost_reason = reason;
    for (auto& p : parts_) p.lease->deadline.end();
    parts_.front().lease->fall(reason);
    keeper_listener& listener = *of().listener_;
    const auto wishes = std::exchange(wishes_, {});
    remember();
    of().leases_.erase(parts_.front().lease.get());  // Ends our own life.
    for (const auto& lease : lost) listener.on_lost(lease, reason);
    for (const auto& one : wishes) one.whose->on_end(reason);
  }

  // Lost with another that it is held with. As of those that are kept as one: whom a server has refused is told alone,
  // and all of them when the time was over.
  void fall() {
    const auto lease = parts_.front().lease;
    const errc reason = lease->fallen();
    if (reason == errc::lease_expired || reason == errc::lease_held_too_long) return lose(reason);
    lease->deadline.end();
    remember();
    of().leases_.erase(lease.get());  // Ends our own life.
  }

  // Their time is over. Without a request of theirs, what the connection failed of is the better answer.
  void give_up_wishes(time_point now) {
    end_wishes([&](const wish& one) { return now >= one.give_up_at; },
               [&](const wish& one) {
                 if (one.is_sent) return one.is_cut ? errc::reply_lost : one.refusal.value_or(errc::reply_lost);
                 const errc trouble = of().channel_.last_failure().code;
                 return trouble == errc{} || of().channel_.is_ready() ? errc::server_silent : trouble;
               });
  }

  template <class Which, class How>
  void end_wishes(const Which& which, const How& how) {
    if (wishes_.empty()) return;
    const auto ended = std::stable_partition(wishes_.begin(), wishes_.end(), [&](const wish& w) { return !which(w); });
    for (auto one = ended; one != wishes_.end(); ++one) one->whose->on_end(how(*one));
    wishes_.erase(ended, wishes_.end());
    if (wishes_.empty()) plan_.stop_asking();
  }

  const std::chrono::milliseconds ttl_;
  std::list<part> parts_;  // They must not move.
  core::lease_keeper plan_;
  time_point oldest_;      // Of renewed_from of all parts,
  std::size_t at_oldest_;  // and how many of them have that.
  const part* refused_ = nullptr;
  bool has_failed_ = false;     // Since the last renewal was sent.
  errc unsent_for_{};           // The next one; told.
  std::vector<wish> wishes_{};  // In the order in which they came.
};

}  // namespace holdfast::engine
