// SPDX-License-Identifier: Apache-2.0
#include "integration/waiting_end.hpp"
#include "support/eventually.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <holdfast/asio.hpp>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::test {
namespace {

namespace asio = boost::asio;

// Static, and ends behind the client. Keeps the process until nothing is left of the handler: the client's end does not
// wait for the thread that would have it told.
struct context {
  std::optional<asio::io_context> io;
  std::weak_ptr<int> of_handler;

  ~context() {
    const auto is_over = [this] {
      io->restart();
      io->poll();
      return of_handler.expired();
    };
    if (io && !eventually(is_over, 10s)) std::abort();
  }
};
context there;
std::optional<client> locks;  // Asio's system context, which is as static, may end before it, or behind it.

template <class Told>
void begin(const std::string& name, Told told) {
  asio::any_completion_handler<void(boost::system::error_code, lease)> handler{
      asio::bind_executor(*there.io, std::move(told))};
  async_acquire(*locks, name, {}, std::move(handler));
}

}  // namespace

int end_waiting(client& begun, const std::vector<std::string>& words) {
  there.io.emplace();
  locks.emplace(std::move(begun));
  // There is a system context since one was told.
  begin(words.at(3), [](boost::system::error_code, const lease&) {});
  there.io->run();
  auto witness = std::make_shared<int>();
  there.of_handler = witness;
  begin(words.at(2), [of = std::move(witness)](boost::system::error_code, const lease&) {});
  std::cout << "waits" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::exit(3);
}

}  // namespace holdfast::test
