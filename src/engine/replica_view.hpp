// SPDX-License-Identifier: Apache-2.0
// What one replica says of itself, and what our login may do there, for doctor: Redis copies data to its replicas, and
// neither settings nor users, so what is wrong with one shows when it has become the primary. Nothing is written there.
#pragma once

#include "base/time.hpp"
#include "engine/greeting.hpp"
#include "resp/reader.hpp"
#include "resp/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::engine {

struct replica_view {
  std::string info{};  // Empty: it is denied.
  std::optional<server_time> clock{};
  std::string backlog_ttl{};         // CONFIG GET repl-backlog-ttl. Empty: it is denied.
  std::string appendfsync{};         // Likewise.
  std::string refusal{};             // Its words for what our login may not do, of what every client must.
  std::vector<std::string> lacks{};  // Commands of our scripts that it may not run. From Redis 7.0 on.
  std::string failure{};             // Why it says nothing at all.
  errc code{};                       // The same, where that is known.
};

// A question for any server: which commands of our scripts whoever asks may not run with that key. The answer is a
// list; servers before Redis 7.0 have none.
void ask_what_is_lacked(std::string& out, std::string_view key);
std::vector<std::string> lacked(const resp::value& answer);

class replica_view_talk {
public:
  using answer_type = replica_view;
  static bool is_well(const replica_view& of) { return of.failure.empty(); }
  static replica_view failed(const connection_failure& why) { return {.failure = why.text, .code = why.code}; }

  // `key`: one as our scripts are given.
  replica_view_talk(credentials who, std::string key) : who_{std::move(who)}, key_{std::move(key)} {}

  void begin();
  void ask(std::string& out);
  bool is_asked() const { return is_asked_; }
  std::optional<replica_view> on_bytes(std::string_view bytes);

private:
  replica_view over(replica_view view);

  credentials who_;
  std::string key_;
  bool is_asked_ = false;
  std::vector<resp::value> heard_{};
  resp::reader reader_{};
};

}  // namespace holdfast::engine
