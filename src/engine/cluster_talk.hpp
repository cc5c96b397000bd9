// SPDX-License-Identifier: Apache-2.0
// What is said to one node of a cluster over one connection: who we are, once, and who serves which slot, again and
// again. Bytes in and out; one question at a time.
#pragma once

#include "engine/cluster_slots.hpp"
#include "engine/greeting.hpp"
#include "resp/reader.hpp"

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
  using answer = cluster_answer;

  // `asked`: where the node is.
  cluster_talk(credentials who, cluster_address asked) : who_{std::move(who)}, asked_{std::move(asked)} {}

  // A new connection stands.
  void begin();
  // Appends the question to `out`. Not while it is_asked().
  void ask(std::string& out);
  bool is_asked() const { return is_asked_; }

  // Takes what has come. An answer ends the question; one with a failure ends the connection too.
  std::optional<cluster_answer> on_bytes(std::string_view bytes);

private:
  cluster_answer read(const resp::value& reply) const;

  credentials who_;
  cluster_address asked_;
  bool is_known_ = false;        // We have said who we are,
  bool is_introducing_ = false;  // and have not heard of it yet.
  bool is_asked_ = false;
  resp::reader reader_{};
};

}  // namespace holdfast::engine
