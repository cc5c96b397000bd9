// SPDX-License-Identifier: Apache-2.0
// Many waiters of one process on one lock, none of which costs a thread. As they are served, each gives back what it
// got.
#pragma once

#include "bench/server.hpp"

#include <holdfast/asio.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace bench {

class crowd {
public:
  crowd(const std::string& where, std::string name, const hiredis& server)
      : locks_{std::in_place, make_client(where)}, name_{std::move(name)}, server_{&server} {}

  // Returns when they stand in line, behind so many others.
  void line_up(int behind, int count) {
    for (int i = 0; i < count; ++i) {
      holdfast::async_acquire(
          *locks_, name_, {}, boost::asio::bind_executor(context_, [this](std::error_code ec, holdfast::lease got) {
            if (ec) return;
            ++served_;
            holdfast::async_release(std::move(got),
                                    boost::asio::bind_executor(context_, [](holdfast::release_outcome) {}));
          }));
    }
    while (waiting() != behind + count) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  int waiting() const { return std::atoi(server_->ask({"ZCARD", "hf:{" + name_ + "}:line"}).c_str()); }

  // Until so many have been served.
  void serve(int count) {
    while (served_ < count) context_.run_one();
  }
  // Whoever still waits is cancelled.
  void disperse() {
    locks_.reset();
    context_.run();
  }

private:
  boost::asio::io_context context_{1};
  std::optional<holdfast::client> locks_;
  std::string name_;
  const hiredis* server_;
  int served_ = 0;
};

}  // namespace bench
