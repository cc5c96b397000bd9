// SPDX-License-Identifier: Apache-2.0
#include "engine/keeper.hpp"

#include "base/assert.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::engine {

// Something that the keeper has to do at a certain time.
class keeper::task : public reply_sink {
public:
  explicit task(keeper& of) : of_{&of} {}
  virtual ~task() {
    of_->unschedule(*this);
    of_->channel_.forget(*this);
  }

  virtual void run(time_point now) = 0;
  virtual void on_ready(time_point now) = 0;

  time_point scheduled_at = never;

protected:
  keeper& of() const { return *of_; }

private:
  keeper* of_;
};

class keeper::renewing final : public task {
public:
  renewing(keeper& of, std::shared_ptr<held_lease> lease, core::lease_keeper plan)
      : task{of}, lease_{std::move(lease)}, plan_{plan} {}

  const std::shared_ptr<held_lease>& lease() const { return lease_; }

  void run(time_point now) override {
    const auto what = plan_.on_wake(now, of().channel_.is_ready());
    if (what.lost) return of().report_loss(*this, *what.lost);
    if (what.at_risk) of().listener_->on_at_risk(lease_);
    if (what.renew) {
      of().channel_.send(now, script::renew(lease_->keys, lease_->owner, lease_->grant, lease_->ttl), *this);
    }
    if (!of().channel_.is_ready() && plan_.waits_for_connection()) of().is_waiting_for_connection_ = true;
    of().schedule(*this, what.wake_at);
  }

  void on_ready(time_point now) override {
    plan_.on_connected(now);
    run(now);
  }

  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
    if (const auto* error = reply.as_error()) {
      const auto what = script::classify(error->text);
      channel& from = of().channel_;
      fail(now, what.code);  // May end our own life.
      if (what.what == script::reaction::reconnect) from.hang_up(now, {what.code, error->text, false, false});
      return;
    }
    const auto parsed = script::parse_renew(reply);
    if (!parsed) return fail(now, errc::unexpected_reply);
    of().channel_.observe_clock(parsed->now, sent_at, now);
    switch (parsed->what) {
      case script::renew_answer::renewed: return renewed(now, sent_at);
      case script::renew_answer::gone: plan_.on_refused(errc::lease_gone); break;
      case script::renew_answer::taken: plan_.on_refused(errc::lease_taken); break;
      case script::renew_answer::broken: plan_.on_refused(errc::lease_broken); break;
    }
    run(now);
  }

  void on_cut(time_point now) override { fail(now, of().channel_.last_failure().code); }

private:
  void renewed(time_point now, time_point sent_at) {
    const duration margin = plan_.deadline() - now;
    if (plan_.on_renewed(now, sent_at, *of().rng_)) {
      if (lease_->deadline.extend(now, plan_.deadline())) {
        of().listener_->on_renewed(lease_, margin);
      } else {
        // A reader saw the old deadline pass and was told "not valid": that stands.
        plan_.on_refused(errc::lease_expired);
      }
    }
    run(now);
  }

  void fail(time_point now, errc reason) {
    plan_.on_failed(now, *of().rng_);
    of().listener_->on_renew_failed(lease_, reason);
    run(now);
  }

  std::shared_ptr<held_lease> lease_;
  core::lease_keeper plan_;
};

class keeper::releasing final : public task {
public:
  releasing(keeper& of, time_point now, background_release what)
      : task{of}, what_{std::move(what)}, plan_{now, what_.not_after, what_.not_after_local, what_.give_up_at} {}

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
  const held_lease* key = lease.get();
  const std::chrono::milliseconds ttl = lease->ttl;
  // A silent connection must be given up while there is time for another.
  if (leases_.empty()) least_silence_ = std::chrono::milliseconds{500};
  least_silence_ = std::min(least_silence_, duration{ttl} / 4);
  channel_.set_least_silence(least_silence_);
  const core::lease_keeper plan{deadline, ttl, mode, drift_, granted_at};
  auto kept = std::make_unique<renewing>(*this, std::move(lease), plan);
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

void keeper::on_wake(time_point now) {
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    task* due = agenda_.begin()->second;
    unschedule(*due);
    due->run(now);
  }
  update_demand();
}

time_point keeper::wake_at() const {
  const time_point next = agenda_.empty() ? never : agenda_.begin()->first;
  return std::min(next, channel_.wake_at());
}

void keeper::schedule(task& what, time_point at) {
  unschedule(what);
  if (at == never) return;
  what.scheduled_at = at;
  agenda_.emplace(at, &what);
}

void keeper::unschedule(task& what) {
  if (what.scheduled_at == never) return;
  agenda_.erase({what.scheduled_at, &what});
  what.scheduled_at = never;
}

void keeper::report_loss(renewing& what, errc reason) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): what it refers to ends below.
  const std::shared_ptr<held_lease> lease = what.lease();
  lease->deadline.end();
  leases_.erase(lease.get());  // Ends the life of `what`.
  listener_->on_lost(lease, reason);
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
  for (task* t : waiting) t->on_ready(now);
  update_demand();
}

void keeper::on_down(time_point /*now*/, const connection_failure& failure, bool was_ready) {
  if (was_ready) listener_->on_down(failure);
  update_demand();
}

void keeper::on_clock_step(duration step) { listener_->on_clock_step(step); }

}  // namespace holdfast::engine
