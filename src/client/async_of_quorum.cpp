// SPDX-License-Identifier: Apache-2.0
// The calls of holdfast/start.hpp where a quorum is behind them: each is the blocking call, on a thread of its own
// (docs/decisions/0022-a-quorum-s-asynchronous-calls-have-threads.md).
#include "client/async_of_quorum.hpp"

#include "client/async_call.hpp"
#include "client/client_state.hpp"
#include "client/fork_guard.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"

#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

// `call` blocks and does not throw; `tell` is called on the callback thread. Both are gone before the client may be.
// (What the callback thread takes is made here, or the errand's thread would need memory for it.)
template <class Call>
void run_errand(const std::shared_ptr<client_state>& of, quorum& by, Call call, std::function<void()> tell) {
  of->callbacks().stand_by();
  // With it the errand has nothing of the client any more, as in conclude_all().
  callback_thread::made_ahead end{[of = of, tell = std::move(tell)]() mutable {
    of.reset();
    tell();
  }};
  by.errands().run([state = of.get(), call = std::move(call), end = std::move(end)]() mutable {
    call(*state);
    const auto callbacks = state->callbacks().weak_from_this().lock();
    callbacks->post(end);
  });
}

// What `blocking` ends with.
template <class Blocking>
std::error_code code_of(const Blocking& blocking) noexcept {
  try {
    blocking();
    return {};
  } catch (const std::system_error& e) {
    return e.code();
  } catch (...) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

class quorum_acquire final : public cancellable {
public:
  quorum_acquire(const client_state& of, quorum_wish what, const std::stop_token& client_is_gone,
                 std::shared_ptr<acquire_receiver> to)
      : generation_{of.generation()}, what_{std::move(what)}, to_{std::move(to)} {
    on_caller_.emplace(std::exchange(what_.cancel, stop_.get_token()), stops{stop_});
    on_client_.emplace(client_is_gone, stops{stop_});
  }

  void cancel() noexcept override {
    if (generation_ == process_generation()) stop_.request_stop();
  }

  void run(client_state& of) noexcept {
    std::optional<lease> got;
    code_ = code_of([&] { got = of.acquire_of_quorum(what_); });
    // wait = 0: somebody held it for the whole of no time.
    if (!code_ && !got) code_ = errc::timed_out;
    if (got) got_ = std::move(*got);
    on_client_.reset();
    on_caller_.reset();
  }
  void tell() {
    const auto to = std::exchange(to_, nullptr);
    to->on_acquired(code_, std::move(got_));
  }

private:
  struct stops {
    std::stop_source& what;
    void operator()() const noexcept { what.request_stop(); }
  };
  using stop_on = std::stop_callback<stops>;

  const unsigned long generation_;
  quorum_wish what_;
  std::shared_ptr<acquire_receiver> to_;
  std::error_code code_{};
  lease got_{};
  std::stop_source stop_{};
  std::optional<stop_on> on_caller_{};
  std::optional<stop_on> on_client_{};
};

}  // namespace

cancel_handle start_acquire_of(quorum& by, const std::shared_ptr<client_state>& of, const acquire_target& what,
                               const acquire_options& options, const script::part& part,
                               std::shared_ptr<acquire_receiver> to) {
  auto wish = of->plan_on_quorum(what.name, options, client_state::patience::as_told, part);
  of->require_wanted(what.name, options.cancel);
  const auto call = std::make_shared<quorum_acquire>(*of, std::move(wish), by.client_is_gone(), std::move(to));
  run_errand(
      of, by, [call](client_state& s) { call->run(s); }, [call] { call->tell(); });
  return cancel_handle{call};
}

void start_release_of(quorum& by, std::unique_ptr<lease_handle> what, release_receiver to) {
  const auto of = what->owner;
  const auto record = what->record;
  record->is_let_go = true;
  const auto had = by.let_go(*record);
  std::shared_ptr<release_outcome> outcome;
  try {
    outcome = std::make_shared<release_outcome>(release_outcome::unknown);
  } catch (...) {
    by.release_in_background(*record, had);
    throw;
  }
  const auto tell = [outcome, to = std::move(to)] { to(*outcome); };
  try {
    run_errand(
        of, by,
        [record, had, outcome](client_state& s) {
          (void)code_of(
              [&] { *outcome = s.release_of_quorum(*record, had, net::boottime_now() + s.options().timeout); });
        },
        tell);
  } catch (...) {
    // No thread: the keeper's does it.
    by.release_in_background(*record, had);
    of->callbacks().post(tell);
  }
}

void start_downgrade_of(quorum& by, const std::shared_ptr<client_state>& of, std::shared_ptr<lease_record> what,
                        code_receiver to) {
  const auto code = std::make_shared<std::error_code>();
  run_errand(
      of, by,
      [what = std::move(what), code](client_state& s) { *code = code_of([&] { s.downgrade_on_majority(*what); }); },
      [code, to = std::move(to)] { to(*code); });
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
