// SPDX-License-Identifier: Apache-2.0
// Who has the client while the end of an asynchronous call is told.
#include "client/async_call.hpp"
#include "client/callback_thread.hpp"
#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <pthread.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#ifndef HOLDFAST_SANITIZED

namespace {

// What this thread waits for behind the next signal that it gives: the other one goes on meanwhile.
thread_local const std::shared_future<bool>* stands_still_until = nullptr;

}  // namespace

extern "C" [[gnu::visibility("default")]] int pthread_cond_signal(pthread_cond_t* condition) {
  static const auto real = reinterpret_cast<int (*)(pthread_cond_t*)>(::dlsym(RTLD_NEXT, "pthread_cond_signal"));
  const int done = real(condition);
  if (const auto* until = std::exchange(stands_still_until, nullptr)) until->wait();
  return done;
}

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

struct nobody final : engine::channel_listener {
  void on_ready(time_point) override {}
  void on_down(time_point, const engine::connection_failure&, bool) override {}
  void on_clock_step(time_point, duration) override {}
};

class ended_flow final : public engine::call {
public:
  explicit ended_flow(engine::channel& to) : call{to} {}
  void step(time_point) override {}
  void on_no_connection(time_point, const engine::connection_failure&) override {}
  void on_reply(time_point, time_point, const resp::value&) override {}
  void on_cut(time_point) override {}
  time_point wake_at() const override { return never; }
  bool is_over() const override { return true; }

private:
  void on_left(time_point) override {}
};

// Its client is anything that is kept like one.
class ended_call final : public async_call {
public:
  ended_call(engine::channel& to, std::shared_ptr<int> of) : flow_{to}, of_{std::move(of)}, seen_{of_} {}
  engine::call& flow() override { return flow_; }
  bool go_on(std::shared_ptr<async_call>) noexcept override { return false; }
  std::shared_ptr<client_state> conclude() noexcept override {
    const auto of = std::exchange(of_, nullptr);
    return {of, nullptr};
  }
  void tell() noexcept override { is_gone.set_value(seen_.expired()); }

  std::promise<bool> is_gone{};

private:
  ended_flow flow_;
  std::shared_ptr<int> of_;
  const std::weak_ptr<int> seen_;
};

// Who hears of it may end the client, whose destructor waits for what is due only where nobody else has it (B59).
TEST(conclude_all, whoever_is_told_finds_no_other_owner_of_the_client) {
  const auto callbacks = std::make_shared<callback_thread>();
  callbacks->stand_by();
  core::seeded_random rng;
  nobody listens;
  engine::channel wire{{}, rng, listens};
  const auto call = std::make_shared<ended_call>(wire, std::make_shared<int>());
  const auto is_gone = call->is_gone.get_future().share();
  stands_still_until = &is_gone;
  conclude_all({call}, *callbacks);
  EXPECT_EQ(stands_still_until, nullptr);
  EXPECT_TRUE(is_gone.get());
  callbacks->close(true);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast

#endif
