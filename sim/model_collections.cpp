// SPDX-License-Identifier: Apache-2.0
// The model's sorted sets, hashes and channels: what the waiting line is made of.
#include "model_redis.hpp"

#include "model_words.hpp"
#include "written_number.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::sim {

namespace {

std::string shown(double score) {
  std::string text;
  write_number(score, text);
  return text;
}

std::optional<double> score_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double score = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || score != score) return std::nullopt;
  return score;
}

// `17`, `(17`, `-inf`, `+inf`
struct bound {
  double score;
  bool is_open;
};
std::optional<bound> bound_of(std::string text) {
  const bool is_open = text.starts_with("(");
  if (is_open) text.erase(0, 1);
  const auto score = score_of(text);
  if (!score) return std::nullopt;
  return bound{*score, is_open};
}

void append_member(resp::value::array& all, const std::pair<double, std::string>& member, bool with_score) {
  all.emplace_back(member.second);
  if (with_score) all.emplace_back(shown(member.first));
}

}  // namespace

template <class Type>
Type* model_redis::collection(const std::string& key, bool& is_wrong) {
  auto* found = find(key);
  auto* data = found ? std::get_if<Type>(&found->data) : nullptr;
  is_wrong = found && !data;
  return data;
}

template <class Type>
Type* model_redis::collection_or_new(const std::string& key, bool& is_wrong) {
  auto* data = collection<Type>(key, is_wrong);
  if (data || is_wrong) return data;
  return std::get_if<Type>(&keyspace_.emplace(key, entry{Type{}}).first->second.data);
}

// ---- sorted sets ----

resp::value model_redis::zadd(words_t words) {
  if (words.size() % 2 != 0) return syntax_error;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    if (!score_of(words[i])) return resp::server_error{"ERR value is not a valid float"};
  }
  bool is_wrong = false;
  auto* set = collection_or_new<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) added += set->put(words[i + 1], *score_of(words[i])) ? 1 : 0;
  return added;
}

resp::value model_redis::zrem(words_t words) {
  bool is_wrong = false;
  auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  std::int64_t removed = 0;
  for (std::size_t i = 2; set && i < words.size(); ++i) removed += set->take(words[i]) ? 1 : 0;
  if (set && set->scores.empty()) keyspace_.erase(words[1]);
  return removed;
}

resp::value model_redis::zscore(words_t words) {
  bool is_wrong = false;
  const auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  if (!set) return {};
  const auto found = set->scores.find(words[2]);
  return found == set->scores.end() ? resp::value{} : resp::value{shown(found->second)};
}

resp::value model_redis::zrank(words_t words) {
  bool is_wrong = false;
  const auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  const auto found = set ? set->scores.find(words[2]) : std::map<std::string, double>::const_iterator{};
  if (!set || found == set->scores.end()) return {};
  const auto at = set->order.find({found->second, found->first});
  return std::int64_t{std::distance(set->order.begin(), at)};
}

resp::value model_redis::zcard(words_t words) {
  bool is_wrong = false;
  const auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  return set ? static_cast<std::int64_t>(set->scores.size()) : std::int64_t{0};
}

resp::value model_redis::zrange(words_t words) {
  const bool with_scores = words.size() == 5 && upper(words[4]) == "WITHSCORES";
  if (words.size() > 4 && !with_scores) return syntax_error;
  const auto first = number_of(words[2]);
  const auto last = number_of(words[3]);
  if (!first || !last) return not_a_number;
  bool is_wrong = false;
  const auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  resp::value::array all;
  if (!set) return all;
  const auto size = static_cast<std::int64_t>(set->order.size());
  const auto from = std::max<std::int64_t>(*first < 0 ? *first + size : *first, 0);
  const auto to = std::min(*last < 0 ? *last + size : *last, size - 1);
  if (from > to) return all;
  auto at = std::next(set->order.begin(), from);
  for (auto i = from; i <= to; ++i, ++at) append_member(all, *at, with_scores);
  return all;
}

// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
resp::value model_redis::zrangebyscore(words_t words) {
  const auto low = bound_of(words[2]);
  const auto high = bound_of(words[3]);
  if (!low || !high) return resp::server_error{"ERR min or max is not a float"};
  bool with_scores = false;
  std::int64_t offset = 0;
  std::int64_t count = -1;
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (upper(words[i]) == "WITHSCORES") {
      with_scores = true;
    } else if (upper(words[i]) == "LIMIT" && i + 2 < words.size()) {
      const auto from = number_of(words[i + 1]);
      const auto most = number_of(words[i + 2]);
      if (!from || !most) return not_a_number;
      offset = *from;
      count = *most;
      i += 2;
    } else {
      return syntax_error;
    }
  }
  bool is_wrong = false;
  const auto* set = collection<sorted_set>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  resp::value::array all;
  if (!set) return all;
  for (const auto& member : set->order) {
    const bool is_above = low->is_open ? member.first > low->score : member.first >= low->score;
    const bool is_below = high->is_open ? member.first < high->score : member.first <= high->score;
    if (!is_above || !is_below || offset-- > 0) continue;
    if (count == 0) break;
    --count;
    append_member(all, member, with_scores);
  }
  return all;
}

// ---- hashes ----

resp::value model_redis::hset(words_t words) {
  if (words.size() % 2 != 0) return resp::server_error{"ERR wrong number of arguments for 'hset' command"};
  bool is_wrong = false;
  auto* map = collection_or_new<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    added += map->fields.insert_or_assign(words[i], words[i + 1]).second ? 1 : 0;
  }
  return added;
}

resp::value model_redis::hget(words_t words) {
  bool is_wrong = false;
  const auto* map = collection<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  if (!map) return {};
  const auto found = map->fields.find(words[2]);
  return found == map->fields.end() ? resp::value{} : resp::value{found->second};
}

resp::value model_redis::hexists(words_t words) {
  bool is_wrong = false;
  const auto* map = collection<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  return std::int64_t{map && map->fields.contains(words[2]) ? 1 : 0};
}

resp::value model_redis::hlen(words_t words) {
  bool is_wrong = false;
  const auto* map = collection<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  return map ? static_cast<std::int64_t>(map->fields.size()) : std::int64_t{0};
}

resp::value model_redis::hgetall(words_t words) {
  bool is_wrong = false;
  const auto* map = collection<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  resp::value::array all;
  if (!map) return all;
  for (const auto& [field, text] : map->fields) {
    all.emplace_back(field);
    all.emplace_back(text);
  }
  return all;
}

resp::value model_redis::hdel(words_t words) {
  bool is_wrong = false;
  auto* map = collection<hash>(words[1], is_wrong);
  if (is_wrong) return wrong_type;
  std::int64_t removed = 0;
  for (std::size_t i = 2; map && i < words.size(); ++i) {
    removed += static_cast<std::int64_t>(map->fields.erase(words[i]));
  }
  if (map && map->fields.empty()) keyspace_.erase(words[1]);
  return removed;
}

// ---- channels ----

resp::value model_redis::publish(words_t words) { return say(words, reach::everywhere); }

// As a script sees it; who asks for it outside of one is told MOVED.
resp::value model_redis::spublish(words_t words) {
  if (serves_ && !serves_(words[1])) {
    return resp::server_error{"ERR Script attempted to access a non local key in a cluster node"};
  }
  return say(words, reach::shard);
}

resp::value model_redis::say(words_t words, reach how) {
  const auto& channels = subscribers_[how];
  const auto found = channels.find(words[1]);
  const std::int64_t listening = found == channels.end() ? 0 : found->second;
  if (listening > 0 || (has_bus_ && how == reach::everywhere)) said_.push_back({words[1], words[2], how});
  return listening + (how == reach::everywhere ? subscribed_to_all_ : 0);
}

resp::value model_redis::pubsub(words_t words) {
  const auto what = upper(words[1]);
  if (what != "NUMSUB" && what != "SHARDNUMSUB") {
    return resp::server_error{"ERR the model does not know PUBSUB " + words[1]};
  }
  const auto& channels = subscribers_[what == "NUMSUB" ? reach::everywhere : reach::shard];
  resp::value::array all;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto found = channels.find(words[i]);
    all.emplace_back(words[i]);
    all.emplace_back(found == channels.end() ? std::int64_t{0} : std::int64_t{found->second});
  }
  return all;
}

}  // namespace holdfast::sim
