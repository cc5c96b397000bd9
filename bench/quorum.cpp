// SPDX-License-Identifier: Apache-2.0
// One free lock on a majority of five servers, beside the same lock on one of them: what a caller waits for it, with
// all of them well, and with one that is silent. Here all servers and the caller share the same cores; so once more
// with a network between, where the servers are waited for and not computed.
#include "bench/far_server.hpp"
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/holdfast.hpp>
#include <holdfast/lab.hpp>

#include <chrono>
#include <list>
#include <string>
#include <vector>

namespace bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds each_way{500};

class five_servers {
public:
  five_servers() : lab_{holdfast::start_lab(holdfast::lab_kind::quorum, {.count = 5})} {}
  ~five_servers() { holdfast::stop_lab(lab_.directory); }
  five_servers(const five_servers&) = delete;
  five_servers& operator=(const five_servers&) = delete;

  const std::string& uri() const { return lab_.uri; }
  std::vector<int> ports() const {
    std::vector<int> all;
    for (const auto& node : lab_.nodes) all.push_back(std::stoi(node.address.substr(node.address.rfind(':') + 1)));
    return all;
  }
  // The last one: where the line would be is another's matter.
  void pause_one() { holdfast::pause_lab_node(lab_.directory, lab_.nodes.back().address); }

private:
  holdfast::lab lab_;
};

// The median of what a try_acquire takes, in microseconds; the release behind it is not counted.
double acquire_us(holdfast::client& locks, double seconds) {
  locks.acquire("bench").release();
  std::vector<double> all;
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{seconds});
  while (clock::now() < until) {
    const auto from = clock::now();
    auto lease = locks.try_acquire("bench");
    all.push_back(std::chrono::duration<double, std::micro>(clock::now() - from).count());
    must(lease.has_value(), "holdfast: busy");
    must(lease->release() == holdfast::release_outcome::released, "holdfast: release failed");
  }
  return median(std::move(all));
}

figure of_a_quorum(const course& how, const std::string& one_server, const std::string& five) {
  figure found;
  auto one = holdfast::client{one_server};
  auto majority = holdfast::client{five};
  for (int i = 0; i < how.rounds; ++i) {
    found.theirs.push_back(acquire_us(one, how.seconds));
    found.ours.push_back(acquire_us(majority, how.seconds));
  }
  found.unit = "us";
  found.yardstick = "the same lock on one server";
  found.goal = 1.5;
  return found;
}

void over_a_network(const course& how) {
  five_servers servers;
  std::list<far_server> far;
  std::string five = "redis+quorum://";
  for (const int port : servers.ports()) {
    far.emplace_back(port, each_way);
    five += (far.size() == 1 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(far.back().port());
  }
  const far_server one{std::stoi(how.where), each_way};
  auto found = of_a_quorum(how, uri_of(std::to_string(one.port())), five);
  found.id = "quorum_5/network";
  found.what = "the same with a network of 0.5 ms each way, to one as to five";
  tell(found);
  servers.pause_one();
  found = of_a_quorum(how, uri_of(std::to_string(one.port())), five);
  found.id = "quorum_5_silent/network";
  found.what = "the same while one of the five is silent";
  tell(found);
}

}  // namespace

void quorum_5(const course& how) {
  five_servers servers;
  const std::string one = uri_of(how.where);
  auto found = of_a_quorum(how, one, servers.uri());
  found.id = "quorum_5";
  found.what = "a free lock on three of five servers, acquire, median";
  tell(found);
  servers.pause_one();
  found = of_a_quorum(how, one, servers.uri());
  found.id = "quorum_5_silent";
  found.what = "the same while one of the five is silent";
  tell(found);
  if (is_port(how.where)) over_a_network(how);
}

}  // namespace bench
