// SPDX-License-Identifier: Apache-2.0
// A real topology for one test, ended with it; and the ways to hurt it. Over holdfast/lab.hpp, so that tests and people
// have the same. Header-only, because the support library links no code of ours: whoever includes this links holdfast.
#pragma once

#include "support/eventually.hpp"
#include "support/reserved_port.hpp"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <holdfast/error.hpp>
#include <holdfast/lab.hpp>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

inline int port_of(const lab_node& node) { return std::stoi(node.address.substr(node.address.find(':') + 1)); }

// By SIGSTOP, as far as its pid is known: it has another one since it was started again.
inline bool is_paused(const lab_node& node) {
  std::ifstream stat{"/proc/" + std::to_string(node.pid) + "/stat"};
  std::string text;
  std::getline(stat, text);
  const auto name_ends = text.rfind(')');
  return name_ends != std::string::npos && text.compare(name_ends, 3, ") T") == 0;
}

// One command over TCP, whose answer `read` makes something of; a default value if there was none: it was killed, or it
// is paused. Whoever runs is waited for, also on a busy machine, or a test would take it for "nothing is there".
template <class Read>
auto ask_for(const lab_node& node, std::vector<const char*> words, Read read) {
  using result = decltype(read(std::declval<const redisReply&>()));
  constexpr std::chrono::seconds at_most{30};
  const auto give_up_at = boottime() + at_most;
  const std::unique_ptr<redisContext, decltype(&redisFree)> server{
      redisConnectWithTimeout("127.0.0.1", port_of(node), {at_most.count(), 0}), redisFree};
  if (!server || server->err != 0) return result{};
  redisSetTimeout(server.get(), {at_most.count(), 0});
  redisAppendCommandArgv(server.get(), static_cast<int>(words.size()), words.data(), nullptr);
  int is_sent = 0;
  while (is_sent == 0 && redisBufferWrite(server.get(), &is_sent) == REDIS_OK) {
  }
  pollfd to_read{server->fd, POLLIN, 0};
  while (::poll(&to_read, 1, 500) == 0) {
    if (is_paused(node)) return result{};
    if (boottime() >= give_up_at) throw std::runtime_error(node.address + " runs and does not answer");
  }
  void* said = nullptr;
  redisGetReply(server.get(), &said);
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply{said, freeReplyObject};
  return said != nullptr ? read(*static_cast<const redisReply*>(said)) : result{};
}

// As text; empty if it was none.
inline std::string ask(const lab_node& node, std::vector<const char*> words) {
  return ask_for(node, std::move(words), [](const redisReply& answer) {
    return answer.str != nullptr ? std::string{answer.str, answer.len} : std::string{};
  });
}

// The digits of a number.
inline std::string ask_number(const lab_node& node, std::vector<const char*> words) {
  return ask_for(node, std::move(words), [](const redisReply& answer) {
    return answer.type == REDIS_REPLY_INTEGER ? std::to_string(answer.integer) : std::string{};
  });
}

// The texts of a list.
inline std::vector<std::string> ask_list(const lab_node& node, std::vector<const char*> words) {
  return ask_for(node, std::move(words), [](const redisReply& answer) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < answer.elements; ++i) all.emplace_back(answer.element[i]->str, answer.element[i]->len);
    return all;
  });
}

class lab_topology {
public:
  explicit lab_topology(lab_kind kind, lab_options options = {}) : lab_{start(kind, options)} {}
  ~lab_topology() {
    try {
      stop_lab(lab_.directory);
    } catch (const error&) {  // Its directory is what the test has made of it.
    }
  }
  lab_topology(const lab_topology&) = delete;
  lab_topology& operator=(const lab_topology&) = delete;

  const std::string& uri() const { return lab_.uri; }
  const std::string& directory() const { return lab_.directory; }
  const std::vector<lab_node>& nodes() const { return lab_.nodes; }

  // Those that were started as that: "primary", "replica", "sentinel".
  std::vector<lab_node> nodes(std::string_view role) const {
    std::vector<lab_node> out;
    for (const auto& node : lab_.nodes)
      if (node.role == role) out.push_back(node);
    return out;
  }

  // Its port stays its own until it is started again.
  void kill(const lab_node& node) {
    kill_lab_node(lab_.directory, node.address);
    killed_.try_emplace(node.address, port_of(node));
  }
  // For a server of somebody else's in its place.
  int give_up_port_of(const lab_node& killed) {
    killed_.erase(killed.address);
    return port_of(killed);
  }
  void pause(const lab_node& node) { pause_lab_node(lab_.directory, node.address); }
  void resume(const lab_node& node) { resume_lab_node(lab_.directory, node.address); }
  void restart(const lab_node& node, lab_data data) {
    killed_.erase(node.address);
    const int pid = restart_lab_node(lab_.directory, node.address, data);
    for (auto& one : lab_.nodes)
      if (one.address == node.address) one.pid = pid;
  }

private:
  // On a machine that starts several of them at once a server may come up too late; what is tested here is not that.
  static lab start(lab_kind kind, const lab_options& options) {
    for (int left = 2;; --left) {
      try {
        return start_lab(kind, options);
      } catch (const error& e) {
        if (left == 0 || e.code() != errc::local_server) throw;
      }
    }
  }

  lab lab_;
  std::map<std::string, reserved_port> killed_{};
};

}  // namespace holdfast::test
