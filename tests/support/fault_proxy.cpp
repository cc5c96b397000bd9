// SPDX-License-Identifier: Apache-2.0
#include "support/fault_proxy.hpp"

#include "support/eventually.hpp"
#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using instant = std::chrono::nanoseconds;

void close_with_reset(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}

struct chunk {
  instant due;
  std::string bytes;
};

// One direction of one connection.
struct lane {
  int from = -1;
  int to = -1;
  fault what{};
  std::size_t passed = 0;  // Since the fault was set.
  std::deque<chunk> waiting{};
  bool ended = false;  // The sender has closed; what waits still flows.
};

struct link {
  lane up, down;
  bool dead = false;
};

}  // namespace

struct fault_proxy::hidden {
  scratch_directory scratch;
  stream_address target;
  stream_address place{scratch / "proxy.sock"};
  int listener = -1;
  int wake = -1;
  mutable std::mutex mutex;
  bool stopping = false;
  fault future_up, future_down;
  std::list<link> links;
  std::array<std::size_t, 2> forwarded{};
  int accepted = 0;
  std::thread thread;

  void start() {
    wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener = listen_at(place);
    if (std::holds_alternative<int>(place)) place = port_of(listener);  // The same one ever after.
    thread = std::thread{[this] { run(); }};
  }

  void poke() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake, &one, sizeof one);
  }

  void accept_all() {
    for (;;) {
      const int client = accept_from(listener);
      if (client < 0) return;
      const int server = connect_to(target);
      if (server < 0) {
        close_with_reset(client);
        continue;
      }
      ++accepted;
      link fresh;
      fresh.up = {client, server, future_up};
      fresh.down = {server, client, future_down};
      links.push_back(std::move(fresh));
    }
  }

  static void end(link& which, bool with_reset) {
    if (with_reset) {
      close_with_reset(which.up.from);
      close_with_reset(which.up.to);
    } else {
      ::close(which.up.from);
      ::close(which.up.to);
    }
    which.dead = true;
  }

  void receive(lane& which) {
    std::array<char, 65536> bytes;
    for (;;) {
      const auto count = ::recv(which.from, bytes.data(), bytes.size(), 0);
      if (count > 0) {
        which.waiting.push_back({boottime() + which.what.delay, {bytes.data(), static_cast<std::size_t>(count)}});
        continue;
      }
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      which.ended = true;
      return;
    }
  }

  // Sends what is due, as far as the fault lets it.
  void forward(link& owner, lane& which, std::size_t& counter) {
    while (!owner.dead && !which.waiting.empty() && which.waiting.front().due <= boottime()) {
      auto& next = which.waiting.front().bytes;
      auto size = which.what.single_bytes ? std::size_t{1} : next.size();
      if (which.what.pass_only)
        size = std::min(size, *which.what.pass_only - std::min(*which.what.pass_only, which.passed));
      if (size == 0) {
        if (which.what.at_the_end != fault::then::hold) end(owner, which.what.at_the_end == fault::then::rst);
        return;
      }
      const auto sent = ::send(which.to, next.data(), size, MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (sent < 0) return end(owner, false);
      which.passed += static_cast<std::size_t>(sent);
      counter += static_cast<std::size_t>(sent);
      next.erase(0, static_cast<std::size_t>(sent));
      if (next.empty()) which.waiting.pop_front();
      // With pass_only exactly used up the end comes now: the receiver must not wait for a byte that is not due.
      if (which.what.pass_only && which.passed == *which.what.pass_only && which.what.at_the_end != fault::then::hold) {
        return end(owner, which.what.at_the_end == fault::then::rst);
      }
    }
    const bool held = which.what.pass_only && which.passed >= *which.what.pass_only;
    if (!owner.dead && which.ended && which.waiting.empty() && !held) end(owner, false);
  }

  int milliseconds_until_due() const {
    auto soonest = boottime() + std::chrono::hours{1};
    for (const auto& l : links) {
      for (const auto* which : {&l.up, &l.down}) {
        const bool held = which->what.pass_only && which->passed >= *which->what.pass_only;
        if (!which->waiting.empty() && !held) soonest = std::min(soonest, which->waiting.front().due);
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - boottime()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
  }

  // What to poll for, and the lane that each entry belongs to.
  std::vector<pollfd> watched() const {
    std::vector<pollfd> all{{wake, POLLIN, 0}};
    if (listener >= 0) all.push_back({listener, POLLIN, 0});
    for (const auto& l : links) {
      if (!l.up.ended) all.push_back({l.up.from, POLLIN, 0});
      if (!l.down.ended) all.push_back({l.down.from, POLLIN, 0});
    }
    return all;
  }

  void run() {
    std::unique_lock hold{mutex};
    while (!stopping) {
      auto all = watched();
      const int patience = milliseconds_until_due();
      hold.unlock();
      ::poll(all.data(), all.size(), patience);
      std::uint64_t poked = 0;
      [[maybe_unused]] const auto drained = ::read(wake, &poked, sizeof poked);
      hold.lock();
      if (listener >= 0) accept_all();
      for (auto& l : links) {
        if (!l.dead && !l.up.ended) receive(l.up);
        if (!l.dead && !l.down.ended) receive(l.down);
        if (!l.dead) forward(l, l.up, forwarded[0]);
        if (!l.dead) forward(l, l.down, forwarded[1]);
      }
      links.remove_if([](const link& l) { return l.dead; });
    }
    for (auto& l : links) end(l, false);
    links.clear();
  }
};

fault_proxy::fault_proxy(const std::string& target_socket) : hidden_{std::make_unique<hidden>()} {
  hidden_->target = target_socket;
  hidden_->start();
}

fault_proxy::fault_proxy(int target_port) : hidden_{std::make_unique<hidden>()} {
  hidden_->target = target_port;
  hidden_->place = 0;
  hidden_->start();
}

fault_proxy::~fault_proxy() {
  {
    const std::lock_guard hold{hidden_->mutex};
    hidden_->stopping = true;
  }
  hidden_->poke();
  hidden_->thread.join();
  if (hidden_->listener >= 0) ::close(hidden_->listener);
  ::close(hidden_->wake);
}

std::string fault_proxy::socket() const { return std::get<std::string>(hidden_->place); }

int fault_proxy::port() const { return std::get<int>(hidden_->place); }

void fault_proxy::set_existing(direction which, const fault& what) {
  {
    const std::lock_guard hold{hidden_->mutex};
    for (auto& l : hidden_->links) {
      auto& chosen = which == direction::to_server ? l.up : l.down;
      chosen.what = what;
      chosen.passed = 0;
    }
  }
  hidden_->poke();
}

void fault_proxy::set_coming(direction which, const fault& what) {
  const std::lock_guard hold{hidden_->mutex};
  (which == direction::to_server ? hidden_->future_up : hidden_->future_down) = what;
}

void fault_proxy::set(direction which, const fault& what) {
  set_existing(which, what);
  set_coming(which, what);
}

void fault_proxy::heal() {
  set(direction::to_server, {});
  set(direction::to_client, {});
}

void fault_proxy::cut_all() {
  {
    const std::lock_guard hold{hidden_->mutex};
    for (auto& l : hidden_->links) {
      if (!l.dead) hidden::end(l, true);
    }
  }
  hidden_->poke();
}

void fault_proxy::refuse_connections(bool on) {
  {
    const std::lock_guard hold{hidden_->mutex};
    if (on && hidden_->listener >= 0) {
      ::shutdown(hidden_->listener, SHUT_RDWR);  // At once, though our thread polls it.
      ::close(hidden_->listener);
      hidden_->listener = -1;
    } else if (!on && hidden_->listener < 0) {
      hidden_->listener = listen_at(hidden_->place);
    }
  }
  hidden_->poke();
}

std::size_t fault_proxy::bytes(direction which) const {
  const std::lock_guard hold{hidden_->mutex};
  return hidden_->forwarded[which == direction::to_server ? 0 : 1];
}

int fault_proxy::connections() const {
  const std::lock_guard hold{hidden_->mutex};
  return hidden_->accepted;
}

int fault_proxy::open_connections() const {
  const std::lock_guard hold{hidden_->mutex};
  return static_cast<int>(hidden_->links.size());
}

}  // namespace holdfast::test
