// SPDX-License-Identifier: Apache-2.0
// Independent servers of which a majority grants, and what is in them. The largest ttl is small, so that no quarantine
// is long.
#pragma once

#include "integration/fixture.hpp"
#include "support/lab.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

class with_quorum : public testing::Test {
protected:
  static constexpr auto max_ttl = 8s;
  static constexpr auto long_enough = 60s;  // For a quarantine and a busy machine.
  static constexpr auto ttl = 4s;           // Long enough for a renewal on a busy machine.
  // What had max_ttl is gone by then only because somebody gave it back.
  static constexpr auto before_its_ttl_ends = max_ttl / 2;

  // `largest`: of all its clients, so that each wait for what may be held somewhere is so long.
  explicit with_quorum(int servers = 3, std::chrono::milliseconds largest = max_ttl)
      : largest_ttl_{largest}, lab_{lab_kind::quorum, {.count = servers, .ready_within = 120s}}, nodes_{lab_.nodes()} {
    // Their first start, which nobody has seen.
    make(10s).declare_nothing_forgotten();
  }

  client make(std::chrono::milliseconds timeout = 10s) const { return client{lab_.uri(), options(timeout)}; }
  client make(const std::vector<int>& of, std::chrono::milliseconds timeout = 10s) const {
    std::string uri;
    for (const int i : of) uri += (uri.empty() ? "redis+quorum://" : ",") + node(i).address;
    return client{uri, options(timeout)};
  }
  // A client of one of them, which knows nothing of a quorum.
  client single(int i) const { return client{"redis://" + node(i).address, options(10s)}; }
  client_options options(std::chrono::milliseconds timeout) const {
    client_options how;
    how.timeout = timeout;
    how.max_ttl = largest_ttl_;
    return how;
  }

  const lab_node& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  std::string ask(int i, std::vector<const char*> words) const { return test::ask(node(i), std::move(words)); }
  std::string value(int i, const char* key = "hf:{x}") const { return ask(i, {"GET", key}); }
  // Of a counted kind: all that is granted there.
  std::string grants(int i) const {
    return ask(i, {"EVAL", "return table.concat(redis.call('HVALS', KEYS[1]), ' ')", "1", "hf:{x}:holders"});
  }
  std::string owner_at(int i) const {
    const auto text = value(i);
    return text.size() > 36 ? text.substr(3, 32) : text;
  }
  // How many have a vote for somebody.
  int votes() const {
    int n = 0;
    for (int i = 0; i < size(); ++i) n += value(i).empty() ? 0 : 1;
    return n;
  }
  // Of what had max_ttl.
  bool nothing_is_left() const {
    return eventually([&] { return votes() == 0; }, before_its_ttl_ends);
  }

  // To acquire takes the votes of a majority. Returns when this lease has all, and each counts: the others are asked
  // behind the round, and what is given only then counts when enough of those of the round were renewed since.
  void have_all_votes(const lease& held, const std::string& key = "hf:{x}") const {
    for (int i = 0; i < 2; ++i) renew_everywhere(held, key);  // Once to be heard of, and once to count.
  }

  // A lease of "x" that is not renewed, with the vote of every server under its token. Who is asked behind the round,
  // on a busy machine, may find the proposal behind its clock and give a token of its own: then another is taken.
  lease with_each_vote(client& locks) const {
    for (int tries = 1;; ++tries) {
      auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
      EXPECT_TRUE(eventually([&] { return votes() == size(); }, long_enough));
      const auto token = std::to_string(held.token().value());
      int of_its_own = 0;
      for (int i = 0; i < size(); ++i) of_its_own += value(i).find(token) == std::string::npos ? 1 : 0;
      if (of_its_own == 0 || tries == 50) {
        EXPECT_EQ(of_its_own, 0);
        return held;
      }
      held.release();
    }
  }

  const std::chrono::milliseconds largest_ttl_;
  lab_topology lab_;
  std::vector<lab_node> nodes_;

private:
  void renew_everywhere(const lease& held, const std::string& key) const {
    // When it expires; Redis 6.2 knows no PEXPIRETIME.
    const auto expiry = [&](const lab_node& at) {
      const auto left = std::stoll(ask_number(at, {"PTTL", key.c_str()}));
      return left < 0 ? 0 : boottime() / 1ms + left;
    };
    std::vector<long long> before;
    for (const auto& one : nodes_) before.push_back(expiry(one));
    const auto is_later = [&](const lab_node& at, long long had) { return expiry(at) > had + 5; };
    EXPECT_TRUE(eventually(
        [&] {
          held.renew();
          return std::equal(nodes_.begin(), nodes_.end(), before.begin(), is_later);
        },
        long_enough));
  }
};

class with_five : public with_quorum {
protected:
  explicit with_five(std::chrono::milliseconds largest = max_ttl) : with_quorum{5, largest} {}
};

}  // namespace holdfast::test
