// SPDX-License-Identifier: Apache-2.0
// A real topology for one test, ended with it; and the ways to hurt it. Over holdfast/lab.hpp, so that tests and people
// have the same. Header-only, because the support library links no code of ours: whoever includes this links holdfast.
#pragma once

#include "support/reserved_port.hpp"

#include <hiredis/hiredis.h>
#include <holdfast/error.hpp>
#include <holdfast/lab.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

inline int port_of(const lab_node& node) { return std::stoi(node.address.substr(node.address.find(':') + 1)); }

// One command over TCP, whose answer `read` makes something of; a default value if there was none.
template <class Read>
auto ask_for(const lab_node& node, std::vector<const char*> words, Read read) {
  using result = decltype(read(std::declval<const redisReply&>()));
  const std::unique_ptr<redisContext, decltype(&redisFree)> server{
      redisConnectWithTimeout("127.0.0.1", port_of(node), {0, 500'000}), redisFree};
  if (!server || server->err != 0) return result{};
  redisSetTimeout(server.get(), {0, 500'000});
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply{
      redisCommandArgv(server.get(), static_cast<int>(words.size()), words.data(), nullptr), freeReplyObject};
  const auto* answer = static_cast<const redisReply*>(reply.get());
  return answer != nullptr ? read(*answer) : result{};
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
