// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_slots.hpp"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace holdfast::engine {

namespace {

// What Redis advises as the most for a cluster, replicas included. Each that is named gets a connection.
constexpr std::size_t most_primaries = 1'000;

// Redis 7 says beside the name by which a node wants to be called how else it may be: [name, value, name, value...].
const std::string* ip_in(const resp::value& more) {
  const auto* words = more.as_array();
  if (!words) return nullptr;
  for (std::size_t i = 0; i + 1 < words->size(); i += 2) {
    const auto* name = (*words)[i].as_bulk();
    const auto* ip = (*words)[i + 1].as_bulk();
    if (name && *name == "ip" && ip && !ip->empty()) return ip;
  }
  return nullptr;
}

// [host, port, id, more]. The host may be nil or empty: the one that was asked, as whoever set the node up wants it
// (`unknown-endpoint`). `?`: it was to be called by a name that it has not got; its IP may be told. Port 0: they have
// lost its address, because another server answers there; by its id it is still one of those whose vote is missing.
std::optional<cluster_primary> node_of(const resp::value& what, const cluster_address& asked) {
  const auto* parts = what.as_array();
  if (!parts || parts->size() < 3) return std::nullopt;
  const auto* host = (*parts)[0].as_bulk();
  const auto* port = (*parts)[1].as_integer();
  const auto* id = (*parts)[2].as_bulk();
  if (!id || id->empty() || !port || *port < 0 || *port > 65'535) return std::nullopt;
  if (!host && !(*parts)[0].is_nil()) return std::nullopt;
  if (*port == 0) return cluster_primary{*id, {{}, *id}, 0};
  if (host && *host == "?" && parts->size() > 3) {
    if (const auto* ip = ip_in((*parts)[3])) host = ip;
  }
  const bool is_known = host && !host->empty() && *host != "?";
  return cluster_primary{*id, {is_known ? *host : asked.host, std::to_string(*port)}, 0};
}

std::optional<std::size_t> slot_in(const resp::value& what) {
  const auto* number = what.as_integer();
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(slot_count)) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::vector<cluster_address> addresses_of(const slots_answer& what) {
  std::vector<cluster_address> all;
  for (const auto& one : what.primaries) all.push_back(one.where);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

std::optional<slots_answer> parse_cluster_slots(const resp::value& reply, const cluster_address& asked) {
  const auto* ranges = reply.as_array();
  if (!ranges) return std::nullopt;
  slots_answer out;
  std::unordered_map<std::string, std::size_t> known;
  std::bitset<slot_count> taken;
  for (const auto& one : *ranges) {
    const auto* parts = one.as_array();
    if (!parts || parts->size() < 3) return std::nullopt;
    const auto first = slot_in((*parts)[0]);
    const auto last = slot_in((*parts)[1]);
    const auto primary = node_of((*parts)[2], asked);
    if (!first || !last || *last < *first || !primary) return std::nullopt;
    for (std::size_t slot = *first; slot <= *last; ++slot) {
      if (taken[slot]) return std::nullopt;
      taken.set(slot);
    }
    const auto [found, is_new] = known.try_emplace(primary->id, out.primaries.size());
    if (is_new) out.primaries.push_back(*primary);
    if (out.primaries.size() > most_primaries) return std::nullopt;
    const auto index = found->second;
    out.ranges.push_back({*first, *last, index});
    out.primaries[index].replicas = static_cast<int>(parts->size() - 3);
    for (std::size_t i = 3; i < parts->size(); ++i) {
      const auto replica = node_of((*parts)[i], asked);
      if (!replica) return std::nullopt;
      out.replicas.push_back({replica->id, replica->where, index});
    }
  }
  return out;
}

bool is_of_cluster(const slots_answer& what, const node_ids& ids) {
  return std::any_of(what.primaries.begin(), what.primaries.end(), [&](const auto& p) { return ids.contains(p.id); }) ||
         std::any_of(what.replicas.begin(), what.replicas.end(), [&](const auto& r) { return ids.contains(r.id); });
}

std::size_t of_uri(std::span<const slots_vote> votes, const node_ids& ids) {
  return static_cast<std::size_t>(std::count_if(
      votes.begin(), votes.end(), [&](const auto& one) { return one.is_of_uri && is_of_cluster(one.what, ids); }));
}

std::size_t slot_map::covered() const {
  return slot_count - static_cast<std::size_t>(std::count(owner.begin(), owner.end(), nobody));
}

namespace {

node_ids ids_of(const slots_answer& what) {
  node_ids all;
  for (const auto& one : what.replicas) all.insert(one.id);
  for (const auto& one : what.primaries) all.insert(one.id);
  return all;
}

// Almost always all say the same, and of hundreds each of hundreds: that is looked at once. `what` is one for those who
// say the same as the one before them.
struct heard {
  const slots_vote* vote;
  const slots_answer* what;
};

std::vector<heard> all_heard(std::span<const slots_vote> votes) {
  std::vector<heard> all;
  all.reserve(votes.size());
  for (const auto& one : votes) {
    const bool is_same = !all.empty() && *all.back().what == one.what;
    all.push_back({&one, is_same ? all.back().what : &one.what});
  }
  return all;
}

// The answers of one cluster: each has a node in common with another one of them.
using cluster_answers = std::vector<heard>;

std::vector<cluster_answers> by_cluster(const std::vector<heard>& votes) {
  std::vector<std::size_t> leads_to(votes.size());  // One of the same cluster, or itself.
  std::iota(leads_to.begin(), leads_to.end(), std::size_t{0});
  const auto first_of = [&](std::size_t vote) {
    while (leads_to[vote] != vote) vote = leads_to[vote] = leads_to[leads_to[vote]];
    return vote;
  };
  std::unordered_map<std::string_view, std::size_t> named_by;
  for (std::size_t v = 0; v < votes.size(); ++v) {
    const auto joins = [&](const std::string& id) {
      const auto other = first_of(named_by.try_emplace(id, v).first->second);
      const auto own = first_of(v);
      leads_to[std::max(other, own)] = std::min(other, own);
    };
    if (v > 0 && votes[v].what == votes[v - 1].what) {
      leads_to[v] = first_of(v - 1);
      continue;
    }
    for (const auto& one : votes[v].what->primaries) joins(one.id);
    for (const auto& one : votes[v].what->replicas) joins(one.id);
  }
  std::map<std::size_t, cluster_answers> all;
  for (std::size_t v = 0; v < votes.size(); ++v) all[first_of(v)].push_back(votes[v]);
  std::vector<cluster_answers> out;
  out.reserve(all.size());
  for (auto& [first, answers] : all) out.push_back(std::move(answers));
  return out;
}

// Where the primaries are: where more than half of the electors say, else where they are known to be, as long as anyone
// says so, else where most say. Nodes tell each other of a new address one after the other, which takes seconds, and
// by who is heard in a round a primary would be here and there in turn. Of as many the same each time.
class whereabouts {
public:
  explicit whereabouts(const std::vector<cluster_primary>& known) {
    for (const auto& one : known) known_.try_emplace(one.id, &one.where);
  }
  void hear(std::size_t primary, const cluster_address& where, std::size_t times) { said_[{primary, where}] += times; }
  void settle(std::vector<cluster_primary>& primaries, std::size_t electors) const {
    std::vector<std::size_t> most(primaries.size(), 0);
    for (const auto& [what, times] : said_) {
      if (times <= most[what.first]) continue;
      most[what.first] = times;
      primaries[what.first].where = what.second;
    }
    for (std::size_t p = 0; p < primaries.size(); ++p) {
      const auto known = known_.find(primaries[p].id);
      if (most[p] * 2 > electors || known == known_.end() || !said_.contains({p, *known->second})) continue;
      primaries[p].where = *known->second;
    }
  }

private:
  std::unordered_map<std::string_view, const cluster_address*> known_{};
  std::map<std::pair<std::size_t, cluster_address>, std::size_t> said_{};
};

// Whom one of them names as the primaries. Those that have one address, because the node that was asked does not know
// theirs, are as many all the same: whoever answers there is one of them (P22).
struct electorate {
  explicit electorate(const slots_answer& what) : at{addresses_of(what)}, size{what.primaries.size()} {}
  friend bool operator<(const electorate& one, const electorate& other) {
    return std::tie(one.size, one.at) < std::tie(other.size, other.at);
  }

  std::vector<cluster_address> at;
  std::size_t size;
};

// What several say.
struct ballot {
  const slots_answer* what;
  std::size_t times;
  std::vector<std::uint16_t> owner = std::vector<std::uint16_t>(slot_count, slot_map::nobody);
};

std::vector<ballot> ballots_of(const cluster_answers& counted) {
  std::vector<ballot> all;
  for (const auto& one : counted) {
    if (!all.empty() && all.back().what == one.what)
      ++all.back().times;
    else
      all.push_back({one.what, 1});
  }
  return all;
}

// By what the electors among them say.
std::optional<slot_map> agreed(const cluster_answers& answers, const electorate& electors, const slot_map& before) {
  cluster_answers counted;
  std::copy_if(answers.begin(), answers.end(), std::back_inserter(counted), [&](const heard& one) {
    return std::binary_search(electors.at.begin(), electors.at.end(), one.vote->from);
  });
  // The silent ones count against everybody, so nobody needs to be asked what these say.
  if (counted.size() * 2 <= electors.size) return std::nullopt;

  slot_map out;
  out.owner.assign(slot_count, slot_map::nobody);
  out.asked_at = never;
  for (const auto& one : counted) out.asked_at = std::min(out.asked_at, one.vote->asked_at);
  std::unordered_map<std::string_view, std::uint16_t> known;
  whereabouts addresses{before.primaries};
  auto said = ballots_of(counted);
  // Where the range of any of them begins, or is over: in between, all slots are alike.
  std::bitset<slot_count + 1> changes;
  for (auto& one : said) {
    out.ids.merge(ids_of(*one.what));
    std::vector<std::uint16_t> index;
    for (const auto& p : one.what->primaries) {
      // All who voted together name more than there are numbers for.
      if (out.primaries.size() == slot_map::nobody) return std::nullopt;
      const auto [at, is_new] = known.try_emplace(p.id, static_cast<std::uint16_t>(out.primaries.size()));
      if (is_new) out.primaries.push_back(p);
      addresses.hear(at->second, p.where, one.times);
      index.push_back(at->second);
    }
    for (const auto& r : one.what->ranges) {
      std::fill(one.owner.begin() + static_cast<std::ptrdiff_t>(r.first),
                one.owner.begin() + static_cast<std::ptrdiff_t>(r.last) + 1, index[r.primary]);
      changes.set(r.first);
      changes.set(r.last + 1);
    }
  }
  addresses.settle(out.primaries, electors.size);
  std::vector<std::size_t> in_favour(out.primaries.size(), 0);
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    if (!changes[slot] && slot > 0) {
      out.owner[slot] = out.owner[slot - 1];
      out.is_unserved[slot] = out.is_unserved[slot - 1];
      continue;
    }
    std::size_t for_nobody = 0;
    for (const auto& one : said) {
      const auto named = one.owner[slot];
      auto& votes = named == slot_map::nobody ? for_nobody : in_favour[named];
      votes += one.times;
      if (votes * 2 <= electors.size) continue;
      out.owner[slot] = named;
      out.is_unserved[slot] = named == slot_map::nobody;
      break;
    }
    for (const auto& one : said) {
      if (one.owner[slot] != slot_map::nobody) in_favour[one.owner[slot]] = 0;
    }
  }
  if (out.covered() == 0) return std::nullopt;
  out.is_named.assign(out.primaries.size(), false);
  for (const auto one : out.owner) {
    if (one != slot_map::nobody) out.is_named[one] = true;
  }
  return out;
}

// Of those whom one of them names as the primaries and a majority of which agrees: whoever serves the most.
std::optional<slot_map> most_agreed(const cluster_answers& answers, const slot_map& before) {
  std::optional<slot_map> best;
  // Most of them name the same, and the votes are counted once for that.
  std::set<electorate> tried;
  const slots_answer* last = nullptr;
  for (const auto& one : answers) {
    if (std::exchange(last, one.what) == one.what) continue;
    const auto [electors, is_new] = tried.emplace(*one.what);
    if (!is_new) continue;
    auto map = agreed(answers, *electors, before);
    if (map && (!best || map->covered() > best->covered())) best = std::move(map);
  }
  return best;
}

}  // namespace

std::optional<slot_map> named_by_majority(std::span<const slots_vote> votes, const slot_map& before) {
  std::optional<slot_map> out;
  std::ptrdiff_t most = -1;  // Nodes of the URI are of one cluster,
  bool is_alone = true;      // and of no other as many.
  for (const auto& answers : by_cluster(all_heard(votes))) {
    const auto is_known = [&](const heard& one) { return is_of_cluster(*one.what, before.ids); };
    if (!before.ids.empty() && std::none_of(answers.begin(), answers.end(), is_known)) continue;
    auto map = most_agreed(answers, before);
    if (!map) continue;
    const auto weight =
        std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one.vote->is_of_uri; });
    if (weight == most) is_alone = false;
    if (weight <= most) continue;
    most = weight;
    is_alone = true;
    out = std::move(map);
  }
  return is_alone ? std::move(out) : std::nullopt;
}

namespace {

// Nobody: there is no number for one more.
std::size_t index_in(slot_map& map, const cluster_primary& who) {
  const auto found =
      std::find_if(map.primaries.begin(), map.primaries.end(), [&](const auto& p) { return p.id == who.id; });
  if (found != map.primaries.end()) return static_cast<std::size_t>(found - map.primaries.begin());
  if (map.primaries.size() == slot_map::nobody) return slot_map::nobody;
  map.primaries.push_back(who);
  map.is_named.push_back(false);
  return map.primaries.size() - 1;
}

}  // namespace

slot_map merged(const slot_map& before, slot_map round) {
  std::vector<std::optional<std::size_t>> here(before.primaries.size());  // Of each that was known, in the round.
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    if (round.owner[slot] != slot_map::nobody || round.is_unserved[slot] || before.primaries.empty()) continue;
    const auto owner = before.owner[slot];
    if (owner == slot_map::nobody) continue;
    if (!here[owner]) {
      here[owner] = index_in(round, before.primaries[owner]);
      round.ids.insert(before.primaries[owner].id);
    }
    const std::size_t index = *here[owner];
    if (index == slot_map::nobody) continue;
    round.owner[slot] = static_cast<std::uint16_t>(index);
    round.is_named[index] = false;
  }
  return round;
}

}  // namespace holdfast::engine
