// SPDX-License-Identifier: Apache-2.0
#include "bench/far_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <deque>
#include <string>
#include <thread>
#include <utility>

namespace bench {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using time_point = std::chrono::steady_clock::time_point;

tcp::endpoint on_loopback(int port) {
  return {asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port)};
}

// A connection of a client and the one to the server that belongs to it. Ends with the first of them.
class pair : public std::enable_shared_from_this<pair> {
public:
  pair(tcp::socket client, asio::io_context& io, std::chrono::microseconds each_way)
      : client_{std::move(client)}, server_{io}, there_{io}, back_{io}, each_way_{each_way} {}

  void start(const tcp::endpoint& server) {
    server_.async_connect(server, [self = shared_from_this()](error_code failed) {
      if (failed) return;
      self->client_.set_option(tcp::no_delay{true});
      self->server_.set_option(tcp::no_delay{true});
      self->read(self->client_, self->server_, self->there_);
      self->read(self->server_, self->client_, self->back_);
    });
  }

private:
  struct way {
    explicit way(asio::io_context& io) : timer{io} {}
    asio::steady_timer timer;
    std::array<char, 16384> read{};
    std::deque<std::pair<time_point, std::string>> on_it{};
  };

  void read(tcp::socket& from, tcp::socket& to, way& over) {
    from.async_read_some(asio::buffer(over.read), [self = shared_from_this(), &from, &to, &over](error_code failed,
                                                                                                 std::size_t size) {
      if (failed) return self->end();
      over.on_it.emplace_back(std::chrono::steady_clock::now() + self->each_way_, std::string{over.read.data(), size});
      if (over.on_it.size() == 1) self->deliver(to, over);
      self->read(from, to, over);
    });
  }

  void deliver(tcp::socket& to, way& over) {
    over.timer.expires_at(over.on_it.front().first);
    over.timer.async_wait([self = shared_from_this(), &to, &over](error_code) {
      asio::async_write(to, asio::buffer(over.on_it.front().second),
                        [self, &to, &over](error_code failed, std::size_t) {
                          if (failed) return self->end();
                          over.on_it.pop_front();
                          if (!over.on_it.empty()) self->deliver(to, over);
                        });
    });
  }

  void end() {
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
  }

  tcp::socket client_;
  tcp::socket server_;
  way there_;
  way back_;
  std::chrono::microseconds each_way_;
};

}  // namespace

class far_server::relay {
public:
  relay(int port, std::chrono::microseconds each_way) : server_{on_loopback(port)}, each_way_{each_way} {
    accept();
    thread_ = std::thread{[this] { io_.run(); }};
  }
  ~relay() {
    io_.stop();
    thread_.join();
  }
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }

private:
  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket client) {
      if (failed) return;
      std::make_shared<pair>(std::move(client), io_, each_way_)->start(server_);
      accept();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, on_loopback(0)};
  tcp::endpoint server_;
  std::chrono::microseconds each_way_;
  std::thread thread_{};
};

far_server::far_server(int port, std::chrono::microseconds each_way)
    : relay_{std::make_unique<relay>(port, each_way)} {}

far_server::~far_server() = default;

int far_server::port() const { return relay_->port(); }

}  // namespace bench
