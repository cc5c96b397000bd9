// SPDX-License-Identifier: Apache-2.0
// client_state's explicit renewal, waited for and not. The keeper sends it, so that one place alone renews and moves
// deadlines, and nothing renews what was let go (C6).
#include "client/async_call.hpp"
#include "client/client_state.hpp"
#include "client/fork_guard.hpp"
#include "client/quorum.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"

#include <holdfast/start.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

void client_state::require_standing(lease_record& record) const {
  if (record.deadline.is_ahead(boottime_now())) return;
  error_detail detail;
  detail.subject = "'" + record.name + "'";
  const errc lost = record.lost_reason;
  throw error{lost != errc{} ? lost : record.is_let_go ? errc::empty_handle : errc::lease_expired, std::move(detail)};
}

void client_state::begin_renewal(lease_record& record, time_point give_up_at,
                                 std::shared_ptr<engine::renewal_wish> whose) {
  const time_point now = boottime_now();
  const time_point until = std::min(give_up_at, now + record.deadline.left(now));
  if (quorum_ && quorum_->renew_now(record, until, whose)) return;
  const auto placed = moving();
  if (!quorum_ && keeper_of(record)->keeper().renew_now(record, until, std::move(whose))) return;
  record.deadline.end();
  require_standing(record);
}

void client_state::cancel_renewal(const lease_record& record, const engine::renewal_wish& whose) {
  if (quorum_) return quorum_->cancel(record, whose);
  const auto placed = moving();
  keeper_of(record)->keeper().cancel(record, whose);
}

namespace {

// A thread waits for it.
class waiting_wish final : public engine::renewal_wish {
public:
  void on_refusal(const std::string& text) noexcept override {
    const std::lock_guard held{mutex_};
    try {
      server_text_ = text;
    } catch (const std::bad_alloc&) {
      server_text_.clear();
    }
  }
  void on_end(errc how) noexcept override {
    const std::lock_guard held{mutex_};
    end_ = how;
    news_.notify_one();
  }
  errc wait() {
    std::unique_lock held{mutex_};
    news_.wait(held, [&] { return end_.has_value(); });
    return *end_;
  }
  // Behind wait().
  const std::string& server_text() const { return server_text_; }

private:
  std::mutex mutex_{};
  std::condition_variable news_{};
  std::optional<errc> end_{};
  std::string server_text_{};
};

// Nobody is told: it is for what the keeper learns.
class silent_wish final : public engine::renewal_wish {
public:
  void on_end(errc /*how*/) noexcept override {}
};

// Nobody waits: it is told on the callback thread.
class async_renewal final : public engine::renewal_wish, public cancellable {
public:
  async_renewal(client_state& of, std::shared_ptr<lease_record> record, code_receiver to)
      : generation_{of.generation()},
        client_{of.weak_from_this()},
        callbacks_{of.callbacks().shared_from_this()},
        record_{std::move(record)},
        tell_{[to = std::move(to), how = how_] { to(*how == errc{} ? std::error_code{} : *how); }} {}

  // Under the keeper's mutex: a receiver that ended here would end the lease that it has, for which that is taken. So
  // nothing may fail.
  void on_end(errc how) noexcept override {
    *how_ = how;
    callbacks_->post(tell_);
  }
  void cancel() noexcept override {
    if (generation_ != process_generation()) return;
    if (const auto of = client_.lock()) of->cancel_renewal(*record_, *this);
  }

private:
  const unsigned long generation_;
  const std::weak_ptr<client_state> client_;  // Its keeper knows us for as long as we are under way.
  const std::shared_ptr<callback_thread> callbacks_;
  const std::shared_ptr<lease_record> record_;
  const std::shared_ptr<errc> how_ = std::make_shared<errc>();
  callback_thread::made_ahead tell_;
};

}  // namespace

void client_state::renew(const std::shared_ptr<lease_record>& record) {
  const net::uncancelled until_done;
  const time_point started_at = boottime_now();
  const auto wish = std::make_shared<waiting_wish>();
  begin_renewal(*record, started_at + options_.timeout, wish);
  const errc code = wish->wait();
  if (code == errc{}) return;
  error_detail detail;
  detail.subject = "'" + record->name + "'";
  detail.server_text = wish->server_text();
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  fail(code, std::move(detail));
}

void client_state::have_keeper_ask(lease_record& record, time_point give_up_at,
                                   std::shared_ptr<engine::renewal_wish> whose) {
  begin_renewal(record, never, std::make_shared<silent_wish>());  // A lease that nothing renews would stand on.
  begin_renewal(record, give_up_at, std::move(whose));
}

void client_state::fail_as_gone(lease_record& record, time_point give_up_at) {
  const net::uncancelled until_done;
  const auto wish = std::make_shared<waiting_wish>();
  have_keeper_ask(record, give_up_at, wish);
  (void)wish->wait();
  error_detail detail;
  detail.subject = "'" + record.name + "'";
  fail(record.why_gone(), std::move(detail));
}

cancel_handle start_renew(const lease_reference& what, code_receiver to) {
  const net::uncancelled until_done;
  const auto of = what.owner();
  const auto wish = std::make_shared<async_renewal>(*of, what.record(), std::move(to));
  of->begin_renewal(*what.record(), boottime_now() + of->options().timeout, wish);
  return cancel_handle{wish};
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
