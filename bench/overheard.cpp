// SPDX-License-Identifier: Apache-2.0
#include "bench/overheard.hpp"

#include <holdfast/holdfast.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bench {

namespace {

// The words of a line of MONITOR.
std::vector<std::string> quoted(const std::string& line) {
  std::vector<std::string> found;
  bool is_inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      is_inside = !is_inside;
      if (is_inside) found.emplace_back();
    } else if (is_inside) {
      if (line[i] == '\\') ++i;
      found.back() += line[i];
    }
  }
  return found;
}

}  // namespace

overheard::overheard(const std::string& where) {
  auto locks = make_client(where);
  locks.acquire(name_).release();  // Connections are made, scripts are known.
  const hiredis monitor{where};
  must(monitor.ask({"MONITOR"}) == "OK", "MONITOR was refused");
  auto held = locks.acquire(name_);
  token_ = held.token().to_string();
  held.release();
  while (release_.empty()) {
    const std::string line = monitor.receive();
    if (line.find(" lua] ") != std::string::npos) continue;
    auto what = quoted(line);
    if (what.empty() || what[0] != "EVALSHA") continue;
    (acquire_.empty() ? acquire_ : release_) = std::move(what);
  }
  owner_ = acquire_.at(3 + static_cast<std::size_t>(std::stoi(acquire_.at(2))));
  must(std::count(release_.begin(), release_.end(), owner_) == 1, "not a release");
}

void overheard::replay(const hiredis& server) const {
  static long number = 0;
  words owners;
  for (int i = 0; i < at_once; ++i) {
    owners.push_back(fmt::format("{:032x}", ++number));
    server.send(as(acquire_, i, owners.back(), {}));
  }
  words tokens;
  for (int i = 0; i < at_once; ++i) tokens.push_back(server.receive());
  for (int i = 0; i < at_once; ++i) {
    const auto which = static_cast<std::size_t>(i);
    must(tokens[which].size() == 16, "the replayed acquire was not granted");
    server.send(as(release_, i, owners[which], tokens[which]));
  }
  for (int i = 0; i < at_once; ++i) must(server.receive().size() == 16, "the replayed release was refused");
}

// With the name, the owner id and the token of another, and no last instant at which it may take effect.
overheard::words overheard::as(const words& what, int number, const std::string& owner,
                               const std::string& token) const {
  words made;
  for (const auto& word : what) {
    const auto at = word.find(name_);
    if (at != std::string::npos) {
      made.push_back(word.substr(0, at) + fmt::format("bench:{}", number) + word.substr(at + name_.size()));
    } else if (word == owner_) {
      made.push_back(owner);
    } else if (word == token_) {
      made.push_back(token);
    } else {
      const bool is_instant = word.size() == 16 && std::all_of(word.begin(), word.end(), ::isdigit);
      made.push_back(is_instant && &what == &acquire_ ? "0" : word);
    }
  }
  return made;
}

}  // namespace bench
