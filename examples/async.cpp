// SPDX-License-Identifier: Apache-2.0
// Many jobs in one process, each in its own coroutine, and no thread waits. Which of them run at the same time is the
// locks' business: those of one tenant follow each other, and at most two bill at once, on however many machines this
// program runs.
//
//   HOLDFAST_URI=redis://db1 async TENANT...
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/asio.hpp>
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;

#ifdef BOOST_ASIO_HAS_CO_AWAIT
namespace {

asio::awaitable<void> bill(holdfast::client& locks, holdfast::semaphore& billing, std::string tenant, bool& failed) {
  try {
    auto lease =
        co_await holdfast::async_acquire(locks, "bill:" + tenant, {.ttl = 10s, .wait = 1min}, asio::use_awaitable);
    auto place = co_await holdfast::async_acquire(billing, {.ttl = 10s, .wait = 1min}, asio::use_awaitable);
    std::printf("%s: my turn, with fencing token %s\n", tenant.c_str(), lease.token().to_string().c_str());
    asio::steady_timer work{co_await asio::this_coro::executor, 10ms};  // Stands for your work.
    co_await work.async_wait(asio::use_awaitable);
    // Ask the server, and throw if the lease is lost: the tenant's next turn may have begun then, or a third one bill.
    co_await holdfast::async_renew(lease, asio::use_awaitable);
    co_await holdfast::async_renew(place, asio::use_awaitable);
    const auto place_end = co_await holdfast::async_release(std::move(place), asio::use_awaitable);
    const auto lease_end = co_await holdfast::async_release(std::move(lease), asio::use_awaitable);
    if (place_end != holdfast::release_outcome::released || lease_end != holdfast::release_outcome::released)
      throw std::runtime_error{"the lease or the place was lost at its end, or nobody answered its release"};
    std::printf("%s: billed\n", tenant.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", tenant.c_str(), e.what());
    failed = true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    holdfast::client locks;
    holdfast::semaphore billing{locks, "billing", 2};
    asio::io_context io;
    bool failed = false;
    for (int i = 1; i < argc; ++i) asio::co_spawn(io, bill(locks, billing, argv[i], failed), asio::detached);
    io.run();
    return failed ? 1 : 0;
  } catch (const holdfast::error& e) {
    return std::fprintf(stderr, "async: %s\n", e.what()), 1;
  }
}
#else
int main() { return std::fputs("async: this compiler has no coroutines that Boost.Asio 1.81 can use\n", stderr), 70; }
#endif
