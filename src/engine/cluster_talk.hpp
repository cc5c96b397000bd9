// SPDX-License-Identifier: Apache-2.0
// What is said to one node of a cluster over one connection: who we are, once, and who serves which slot, again and
// again. Bytes in and out; one question at a time.
#pragma once

#include "engine/cluster_slots.hpp"
#include "engine/greeting.hpp"
#include "engine/repeated_question.hpp"
#include "resp/value.hpp"

#include <holdfast/error.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

struct cluster_answer {
  std::optional<slots_answer> slots{};
  // Why there are none.
  std::string failure{};
  errc code = errc::no_primary;
  bool is_final = false;  // Asking again will not help.
};

class cluster_talk {
public:
  using answer_type = cluster_answer;
  static bool is_well(const cluster_answer& of) { return of.failure.empty(); }
  static cluster_answer failed(const connection_failure& why) {
    return {std::nullopt, why.text, why.code, why.is_final};
  }

  // `asked`: where the node is.
  cluster_talk(credentials who, cluster_address asked) : line_{std::move(who)}, asked_{std::move(asked)} {}

  // A new connection stands.
  void begin() { line_.begin(); }
  // Appends the question to `out`. Not while it is_asked().
  void ask(std::string& out);
  bool is_asked() const { return line_.is_asked(); }

  // Takes what has come. An answer ends the question; one that is not is_well() ends the connection too.
  std::optional<cluster_answer> on_bytes(std::string_view bytes);

private:
  cluster_answer read(const resp::value& reply) const;

  repeated_question line_;
  cluster_address asked_;
};

}  // namespace holdfast::engine
