// SPDX-License-Identifier: Apache-2.0
#include "local/ask.hpp"

#include "local/clock.hpp"
#include "local/descriptor.hpp"
#include "resp/reader.hpp"
#include "resp/writer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>

namespace holdfast::local {
namespace {

class connection {
public:
  explicit connection(int port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_good_ = socket_.is_open() &&
               (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                errno == EINPROGRESS);
  }

  bool is_good() const { return is_good_; }

  // False at the deadline.
  bool wait_for(short event, time_point give_up_at) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime_now()).count();
      pollfd waiting{socket_.get(), event, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }

  bool send(std::string_view bytes, time_point give_up_at) const {
    while (!bytes.empty()) {
      if (!wait_for(POLLOUT, give_up_at)) return false;
      const auto count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) return false;  // Also when the connection was refused.
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  std::optional<resp::value> receive(time_point give_up_at) const {
    resp::reader reader;
    std::array<char, 16'384> bytes;
    while (wait_for(POLLIN, give_up_at)) {
      const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) break;
      reader.feed({bytes.data(), static_cast<std::size_t>(count)});
      if (auto value = reader.next()) return value;
      if (!reader.failure().empty()) break;
    }
    return std::nullopt;
  }

private:
  descriptor socket_;
  bool is_good_ = false;
};

}  // namespace

std::optional<resp::value> ask(int port, std::span<const std::string_view> words, time_point give_up_at) {
  const connection server{port};
  std::string request;
  resp::append_request(request, words);
  if (!server.is_good() || !server.send(request, give_up_at)) return std::nullopt;
  return server.receive(give_up_at);
}

std::string ask_text(int port, std::span<const std::string_view> words, time_point give_up_at) {
  const auto answer = ask(port, words, give_up_at);
  if (!answer) return {};
  if (const auto* bulk = answer->as_bulk()) return *bulk;
  if (const auto* status = answer->as_status()) return status->text;
  if (const auto* error = answer->as_error()) return error->text;
  return {};
}

}  // namespace holdfast::local
