// SPDX-License-Identifier: Apache-2.0
#include "local/lab_cluster.hpp"

#include "local/ask.hpp"
#include "local/clock.hpp"
#include "local/failure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slots = 16'384;

std::string tell(const lab_member& node, std::initializer_list<std::string_view> words) {
  return ask_text(node.port, words, boottime_now() + 2s);
}

void demand(const lab_member& node, std::initializer_list<std::string_view> words) {
  if (const auto answer = tell(node, words); answer != "OK")
    fail(node.address(), fmt::format("It refused {}.", fmt::join(words, " ")), answer);
}

// One by one: Redis 6.2 knows no ADDSLOTSRANGE.
void give_slots(const lab_member& node, std::size_t from, std::size_t to) {
  std::vector<std::string> numbers;
  for (auto slot = from; slot < to; ++slot) numbers.push_back(std::to_string(slot));
  std::vector<std::string_view> words{"CLUSTER", "ADDSLOTS"};
  words.insert(words.end(), numbers.begin(), numbers.end());
  if (const auto answer = ask_text(node.port, words, boottime_now() + 2s); answer != "OK")
    fail(node.address(), fmt::format("It refused CLUSTER ADDSLOTS {} to {}.", from, to - 1), answer);
}

}  // namespace

void form_cluster(const lab_record& lab, const lab_patience& patience) {
  std::vector<lab_member> primaries, replicas;
  for (const auto& member : lab.members) (member.role == lab_role::primary ? primaries : replicas).push_back(member);

  // An epoch of its own for each, as long as they are alone: otherwise all have the same, and it takes the primaries a
  // while to disagree.
  for (std::size_t i = 0; i < lab.members.size(); ++i)
    demand(lab.members[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
  for (std::size_t i = 0; i < primaries.size(); ++i)
    give_slots(primaries[i], slots * i / primaries.size(), slots * (i + 1) / primaries.size());
  // Everybody introduces himself to everybody: gossip would get around too, in seconds.
  for (const auto& one : lab.members)
    for (const auto& other : lab.members)
      if (one.port < other.port) demand(one, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(other.port)});

  // A replica must have met its primary, and knows it under another name until then.
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const auto& primary = primaries[i % primaries.size()];
    const auto id = tell(primary, {"CLUSTER", "MYID"});
    patience.until([&] {
      const auto answer = tell(replicas[i], {"CLUSTER", "REPLICATE", id});
      return answer == "OK"
                 ? ""
                 : fmt::format("{} cannot replicate {} yet: {}", replicas[i].address(), primary.address(), answer);
    });
  }
}

}  // namespace holdfast::local
