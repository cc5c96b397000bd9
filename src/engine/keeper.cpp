// SPDX-License-Identifier: Apache-2.0
#include "engine/keeper.hpp"

#include "base/assert.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

namespace holdfast::engine {

// Something that the keeper has to do at a certain time.
class keeper::task {
public:
  explicit task(keeper& of) : number{++of.last_number_}, of_{&of} {}
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  virtual ~task() { of_->unschedule(*this); }

  virtual void run(time_point now) = 0;
  virtual void on_ready(time_point now) = 0;

  const std::uint64_t number;
  time_point scheduled_at = never;

protected:
  keeper& of() const { return *of_; }

private:
  keeper* of_;
};

// One lease, or several that are kept as one. Each of them has its own request and its own answer in a renewal.
class keeper::renewing final : public task {
public:
  renewing(keeper& of, leases several, time_point renewed_from, core::lease_keeper plan) : task{of}, plan_{plan} {
    for (auto& lease : several) parts_.emplace_back(*this, std::move(lease), renewed_from);
  }

  void run(time_point now) override {
    const auto what = plan_.on_wake(now, of().channel_.is_ready());
    if (what.lost) return lose(*what.lost);
    for (const auto& p : parts_) {
      if (what.at_risk) of().listener_->on_at_risk(p.lease);
    }
    if (what.renew) send(now);
    if (!of().channel_.is_ready() && plan_.waits_for_connection()) of().is_waiting_for_connection_ = true;
    of().schedule(*this, what.wake_at);
  }

  void on_ready(time_point now) override {
    plan_.on_connected(now);
    run(now);
  }

private:
  struct part final : reply_sink {
    part(renewing& r, std::shared_ptr<held_lease> l, time_point from)
        : whole{&r}, lease{std::move(l)}, renewed_from{from} {}
    ~part() { whole->of().channel_.forget(*this); }
    part(const part&) = delete;
    part& operator=(const part&) = delete;

    void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
      whole->on_reply(*this, now, sent_at, reply);
    }
    void on_cut(time_point now) override { whole->fail(*this, now, whole->of().channel_.last_failure().code); }

    renewing* whole;
    std::shared_ptr<held_lease> lease;
    time_point renewed_from;
  };

  void send(time_point now) {
    has_failed_ = false;
    for (auto& p : parts_) {
      of().channel_.send(now, script::renew(p.lease->keys, p.lease->owner, p.lease->grant, p.lease->ttl), p);
    }
  }

  void on_reply(part& to, time_point now, time_point sent_at, const resp::value& reply) {
    if (const auto* error = reply.as_error()) {
      const auto what = script::classify(error->text);
      channel& from = of().channel_;
      fail(to, now, what.code);  // May end our own life.
      if (what.what == script::reaction::reconnect) from.hang_up(now, {what.code, error->text, false, false});
      return;
    }
    const auto parsed = script::parse_renew(reply);
    if (!parsed) return fail(to, now, errc::unexpected_reply);
    of().channel_.observe_clock(parsed->now, sent_at, now);
    switch (parsed->what) {
      case script::renew_answer::renewed: return renewed(to, now, sent_at);
      case script::renew_answer::gone: return refuse(to, now, errc::lease_gone);
      case script::renew_answer::taken: return refuse(to, now, errc::lease_taken);
      case script::renew_answer::broken: return refuse(to, now, errc::lease_broken);
    }
  }

  // Holds from the instant from which all of them are renewed.
  void renewed(part& one, time_point now, time_point sent_at) {
    one.renewed_from = std::max(one.renewed_from, sent_at);
    const auto oldest = std::min_element(parts_.begin(), parts_.end(),
                                         [](const part& a, const part& b) { return a.renewed_from < b.renewed_from; });
    const duration margin = plan_.deadline() - now;
    if (plan_.on_renewed(now, oldest->renewed_from, *of().rng_)) {
      for (auto& p : parts_) {
        // A reader saw the old deadline pass and was told "not valid": that stands.
        if (!p.lease->deadline.extend(now, plan_.deadline())) return refuse(p, now, errc::lease_expired);
      }
      for (const auto& p : parts_) of().listener_->on_renewed(p.lease, margin);
    }
    run(now);
  }

  void refuse(const part& one, time_point now, errc reason) {
    refused_ = &one;
    plan_.on_refused(reason);
    run(now);
  }

  void fail(part& one, time_point now, errc reason) {
    // One cut fails all that was sent with it, and is one failure.
    if (!std::exchange(has_failed_, true)) plan_.on_failed(now, *of().rng_);
    of().listener_->on_renew_failed(one.lease, reason);
    run(now);
  }

  void lose(errc reason) {
    leases lost;
    for (auto& p : parts_) {
      p.lease->deadline.end();
      if (!refused_ || refused_ == &p) lost.push_back(p.lease);
    }
    keeper_listener& listener = *of().listener_;
    of().leases_.erase(parts_.front().lease.get());  // Ends our own life.
    for (const auto& lease : lost) listener.on_lost(lease, reason);
  }

  std::list<part> parts_;  // They must not move.
  core::lease_keeper plan_;
  const part* refused_ = nullptr;
  bool has_failed_ = false;  // Since the last renewal was sent.
};

class keeper::releasing final : public task, public reply_sink {
public:
  releasing(keeper& of, time_point now, background_release what)
      : task{of}, what_{std::move(what)}, plan_{now, what_.not_after, what_.not_after_local, what_.give_up_at} {}
  ~releasing() override { of().channel_.forget(*this); }
  releasing(const releasing&) = delete;
  releasing& operator=(const releasing&) = delete;

  void run(time_point now) override {
    const bool can_send = of().channel_.is_ready();
    if (plan_.on_wake(now, can_send)) {
      of().channel_.send(
          now,
          what_.token ? script::release(what_.keys, what_.owner, what_.token) : script::leave(what_.keys, what_.owner),
          *this);
    }
    if (plan_.is_over(now)) {
      of().releases_.erase(this);  // Ends our own life.
      return;
    }
    if (!can_send) of().is_waiting_for_connection_ = true;
    of().schedule(*this, plan_.wake_at(can_send));
  }

  void on_ready(time_point now) override { run(now); }

  bool is_of(std::string_view owner) const { return what_.owner.hex() == owner; }
  void hurry(time_point now) {
    plan_.hurry(now);
    of().schedule(*this, now);
  }

  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
    if (const auto parsed = script::parse_release(reply)) {
      of().channel_.observe_clock(parsed->now, sent_at, now);
      plan_.on_definite(now, parsed->now, *of().rng_);
      return run(now);
    }
    channel& from = of().channel_;
    plan_.on_failed(now, *of().rng_);
    run(now);  // May end our own life.
    if (const auto* error = reply.as_error()) {
      const auto what = script::classify(error->text);
      if (what.what == script::reaction::reconnect) from.hang_up(now, {what.code, error->text, false, false});
    }
  }

  void on_cut(time_point now) override {
    plan_.on_failed(now, *of().rng_);
    run(now);
  }

private:
  background_release what_;
  core::clean_up plan_;
};

keeper::keeper(channel::settings settings, core::clock_drift drift, base::random_source& rng, keeper_listener& listener)
    : drift_{drift}, rng_{&rng}, listener_{&listener}, channel_{std::move(settings), rng, *this} {}

keeper::~keeper() {
  leases_.clear();
  releases_.clear();
}

void keeper::keep(std::shared_ptr<held_lease> lease, time_point granted_at, time_point deadline, renewal mode) {
  leases one;
  one.push_back(std::move(lease));
  keep_as_one(std::move(one), granted_at, deadline, mode);
}

void keeper::keep_as_one(leases several, time_point granted_at, time_point deadline, renewal mode) {
  const held_lease* key = several.front().get();
  const std::chrono::milliseconds ttl = key->ttl;
  // A silent connection must be given up while there is time for another.
  if (leases_.empty()) least_silence_ = std::chrono::milliseconds{500};
  least_silence_ = std::min(least_silence_, duration{ttl} / 4);
  channel_.set_least_silence(least_silence_);
  const core::lease_keeper plan{deadline, ttl, mode, drift_, granted_at};
  auto kept = std::make_unique<renewing>(*this, std::move(several), deadline - core::usable(ttl, drift_), plan);
  schedule(*kept, std::min(deadline - core::risk_lead(ttl), plan.next_send_at()));
  leases_.emplace(key, std::move(kept));
}

bool keeper::let_go(const held_lease& lease) {
  const bool was_kept = leases_.erase(&lease) > 0;
  update_demand();
  return was_kept;
}

void keeper::release_later(time_point now, background_release what) {
  auto background = std::make_unique<releasing>(*this, now, std::move(what));
  const releasing* key = background.get();
  auto& started = *releases_.emplace(key, std::move(background)).first->second;
  schedule(started, now);
}

void keeper::on_stray_hint(time_point now, std::string_view owner) {
  for (auto& [key, background] : releases_) {
    if (background->is_of(owner)) background->hurry(now);
  }
}

void keeper::on_wake(time_point now) {
  while (!agenda_.empty() && std::get<time_point>(*agenda_.begin()) <= now) {
    task* due = std::get<task*>(*agenda_.begin());
    unschedule(*due);
    due->run(now);
  }
  update_demand();
}

time_point keeper::wake_at() const {
  const time_point next = agenda_.empty() ? never : std::get<time_point>(*agenda_.begin());
  return std::min(next, channel_.wake_at());
}

void keeper::schedule(task& what, time_point at) {
  unschedule(what);
  if (at == never) return;
  what.scheduled_at = at;
  agenda_.emplace(at, what.number, &what);
}

void keeper::unschedule(task& what) {
  if (what.scheduled_at == never) return;
  agenda_.erase({what.scheduled_at, what.number, &what});
  what.scheduled_at = never;
}

void keeper::update_demand() {
  if (is_idle()) is_waiting_for_connection_ = false;
  channel_.set_demand(is_waiting_for_connection_);
}

void keeper::on_ready(time_point now) {
  is_waiting_for_connection_ = false;
  listener_->on_up();
  // Tasks may end while they run, so they are looked up again one by one.
  std::vector<task*> waiting;
  for (auto& [key, kept] : leases_) waiting.push_back(kept.get());
  for (auto& [key, background] : releases_) waiting.push_back(background.get());
  std::sort(waiting.begin(), waiting.end(), [](const task* a, const task* b) { return a->number < b->number; });
  for (task* t : waiting) t->on_ready(now);
  update_demand();
}

void keeper::on_down(time_point /*now*/, const connection_failure& failure, bool was_ready) {
  if (was_ready) listener_->on_down(failure);
  update_demand();
}

void keeper::on_clock_step(duration step) { listener_->on_clock_step(step); }

}  // namespace holdfast::engine
