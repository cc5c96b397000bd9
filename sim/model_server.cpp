// SPDX-License-Identifier: Apache-2.0
#include "model_server.hpp"

#include "resp/writer.hpp"
#include "script/slot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

void append(std::string& out, const resp::value& what) {
  if (const auto* text = what.as_bulk()) {
    resp::append_word(out, *text);
  } else if (const auto* number = what.as_integer()) {
    out += ':' + std::to_string(*number) + "\r\n";
  } else if (const auto* status = what.as_status()) {
    out += '+' + status->text + "\r\n";
  } else if (const auto* error = what.as_error()) {
    out += '-' + error->text + "\r\n";
  } else if (const auto* all = what.as_array()) {
    resp::append_header(out, all->size());
    for (const auto& element : *all) append(out, element);
  } else {
    out += "$-1\r\n";
  }
}

const script::source* source_of(words_t words) {
  if (words.size() < 4 || (words[0] != "EVALSHA" && words[0] != "EVAL")) return nullptr;
  for (const auto& source : script::all()) {
    if (words[1] == (words[0] == "EVAL" ? source.text : source.sha1)) return &source;
  }
  return nullptr;
}

}  // namespace

model_server::model_server(event_queue& events, wall_clock clock, std::shared_ptr<lua_host> scripts, hooks tell,
                           int which)
    : events_{&events},
      which_{which},
      clock_{clock},
      tell_{std::move(tell)},
      redis_{clock.read(events.now()), std::move(scripts)} {
  redis_.set_bus(static_cast<bool>(tell_.on_said));
  redis_.set_serves([this](const std::string& channel) { return !moved(channel); });
  redis_.start_run(run_id());
  redis_.set_started_at(redis_.now() - std::chrono::hours{24 * 365});  // Before anybody who is here.
}

std::string model_server::run_id() const { return fmt::format("{:08}{:032}", which_, runs_); }

server_time model_server::now() {
  const auto at = clock_.read(events_->now());
  redis_.set_now(at);
  return at;
}

resp::value model_server::operate(std::initializer_list<std::string> words) {
  now();
  auto reply = redis_.execute(words);
  note_writes();
  return reply;
}

resp::value model_server::break_lock(const lock& of, const holder& whose, bool at_once) {
  const auto& keys = of.keys;
  const auto& source = script::find(keys.is_counted ? script::id::break_counted : script::id::break_lock);
  std::vector<std::string> words{
      "EVAL",        std::string{source.text}, keys.is_counted ? "6" : "5", keys.holder, keys.fence(), keys.line(),
      keys.waiters()};
  if (keys.is_counted) words.push_back(keys.holders());
  // A script runs as the server has learned it: the canary's text under the digest of ours.
  words.insert(words.end(), {keys.broken(), whose.token, at_once ? "now" : "expiry", "an operator", "why"});
  now();
  auto reply = answer_script({nobody, events_->now(), false}, of, source.which, words);
  spread_messages();
  note_writes();
  flush();
  return reply;
}

// Of its newest connection: another may have been cut off, and nobody here knows.
std::string model_server::channel_of(int host) const {
  std::string channel;
  for (const auto& [id, c] : connections_) {
    if (c.host == host && !c.channels.empty()) channel = c.channels.begin()->first;
  }
  return channel;
}

void model_server::forge(const std::string& channel, const std::string& text) {
  operate({channel.ends_with('}') ? "SPUBLISH" : "PUBLISH", channel, text});
  spread_messages();
  flush();
}

void model_server::migrate(const script::lock_keys& which, model_server& to) {
  now();
  to.now();
  redis_.migrate({which.holder, which.fence(), which.line(), which.waiters(), which.holders(), which.broken()},
                 to.redis_);
  note_writes();
  to.note_writes();
}

// ---- connections ----

void model_server::on_accepted(int id, int host) { connections_.emplace(id, connection{id, host}); }

void model_server::on_closed(int id) { drop(id); }

void model_server::drop(int id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  for (const auto& [channel, how] : found->second.channels) redis_.unsubscribe(channel, how);
  connections_.erase(found);
}

void model_server::kill_clients(kill whom) {
  std::vector<int> all;
  for (const auto& [id, c] : connections_) {
    if (whom == kill::all || !c.channels.empty()) all.push_back(id);
  }
  for (const int id : all) {
    drop(id);
    network_->server_closes(id);
  }
}

void model_server::restart(instant up_at, model_redis::keyspace data) {
  up_at_ = began_at_ = up_at;
  kill_clients(kill::all);
  redis_.forget_scripts();
  redis_.load(std::move(data));
  ++runs_;
  redis_.start_run(run_id());
  // It starts when it is up again, by its clock of then.
  events_->at(up_at, [this, run = runs_] {
    now();
    if (run != runs_) return;
    redis_.set_started_at(redis_.now());
    if (tell_.on_started) tell_.on_started();
  });
}

void model_server::become_replica() {
  redis_.set_replica(true);
  kill_clients(kill::all);
}

// As REPLICAOF NO ONE: the id is new, and the one that it copied under is the second.
void model_server::become_primary() {
  began_at_ = events_->now();
  redis_.set_replica(false);
  redis_.set_replication(fmt::format("{:08}{:032}", which_, ++promotions_), std::string(40, 'b'));
  kill_clients(kill::all);
}

// ---- requests ----

void model_server::on_bytes(int id, std::string_view bytes, instant sent_at) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  now();
  auto& from = found->second;
  if (from.waits) return from.unread.push_back({std::string{bytes}, sent_at});
  from.reader.feed(bytes);
  serve(from, sent_at);
}

void model_server::serve(connection& from, instant sent_at) {
  while (!from.waits) {
    const auto request = from.reader.next();
    if (!request) break;
    const auto& elements = *request->as_array();
    words_.resize(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) words_[i] = *elements[i].as_bulk();
    const auto before = redis_.writes();
    if (words_[0] == "SUBSCRIBE" || words_[0] == "SSUBSCRIBE") {
      subscribe(from, words_);
    } else if (words_[0] == "WAIT") {
      wait(from, words_, sent_at);
    } else {
      append(from.output, answer(from, words_, sent_at));
    }
    if (redis_.writes() != before) from.writes = redis_.writes();
    spread_messages();
  }
  note_writes();
  flush();
}

void model_server::note_writes() {
  if (std::exchange(seen_writes_, redis_.writes()) != redis_.writes() && tell_.on_written) tell_.on_written();
}

// ---- copies ----

void model_server::wait(connection& from, words_t words, instant sent_at) {
  if (redis_.is_replica()) {
    append(from.output, resp::server_error{"ERR WAIT cannot be used with replica instances."});
    return;
  }
  const int copies = std::stoi(words[1]);
  const int have = copies_of(from.writes);
  if (have >= copies) return append(from.output, resp::value{static_cast<std::int64_t>(have)});
  const auto number = ++last_wait_;
  from.waits = waiting{copies, from.writes, number, sent_at};
  note_writes();
  events_->after(std::chrono::milliseconds{std::stoi(words[2])}, [this, number] {
    for (auto& [id, c] : connections_) {
      if (!c.waits || c.waits->number != number) continue;
      return end_wait(c, copies_of(c.waits->writes));
    }
  });
}

void model_server::end_wait(connection& from, int copies) {
  const instant sent_at = std::exchange(from.waits, std::nullopt)->sent_at;
  now();
  append(from.output, resp::value{static_cast<std::int64_t>(copies)});
  serve(from, sent_at);
  while (!from.waits && !from.unread.empty()) {
    const auto next = std::move(from.unread.front());
    from.unread.pop_front();
    from.reader.feed(next.bytes);
    serve(from, next.sent_at);
  }
}

void model_server::on_copied() {
  for (auto& [id, c] : connections_) {
    if (!c.waits) continue;
    const int have = copies_of(c.waits->writes);
    if (have >= c.waits->copies) end_wait(c, have);
  }
}

resp::value model_server::answer(connection& from, words_t words, instant sent_at) {
  if (!from.channels.empty() && words[0] != "PING") {
    return resp::server_error{"ERR Can't execute '" + words[0] +
                              "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                              "QUIT / RESET are allowed in this context"};
  }
  if (tell_.refuses && words.size() > 3 && words[0].starts_with("EVAL") && words[2] != "0") {
    if (auto why = tell_.refuses(words[3])) return resp::server_error{*std::move(why)};
  }
  if (const auto* source = source_of(words)) {
    if (const auto* of = tell_.find_lock(words[3])) {
      return answer_script({tell_.process_of(from.host), sent_at, network_->is_given_up(from.id)}, *of, source->which,
                           words);
    }
  }
  auto reply = redis_.execute(words);
  tell_.on_command(words[0], reply);
  return reply;
}

resp::value model_server::answer_script(const asker& who, const lock& of, script::id which, words_t words) {
  const auto keys = static_cast<std::size_t>(std::stoi(words[2]));
  script_run run{which,     words.subspan(3, keys), words.subspan(3 + keys), who.process, who.sent_at,
                 of.number, redis_.now(),           who.has_given_up};
  run.before = holders_of(redis_, of);
  run.line_before = line_of(redis_, of);
  auto reply = redis_.execute(words);
  run.after = holders_of(redis_, of);
  run.reply = &reply;
  tell_.on_script(run);
  return reply;
}

// ---- subscriptions ----

void model_server::subscribe(connection& from, words_t words) {
  const auto how = words[0] == "SUBSCRIBE" ? reach::everywhere : reach::shard;
  for (const auto& channel : words.subspan(1)) {
    const auto reply = subscribe(from, channel, how);
    append(from.output, reply);
    tell_.on_command(words[0], reply);
    if (reply.as_error()) return;
  }
}

resp::value model_server::subscribe(connection& from, const std::string& channel, reach how) {
  const std::string name = how == reach::shard ? "ssubscribe" : "subscribe";
  if (denies_subscribe_) {
    return resp::server_error{"NOPERM this user has no permissions to run the '" + name + "' command"};
  }
  if (how == reach::shard) {
    if (const auto where = moved(channel)) return resp::server_error{*where};
  }
  if (from.channels.insert({channel, how}).second) redis_.subscribe(channel, how);
  return resp::value::array{name, channel, count_of(from, how)};
}

// Those of one reach are counted apart.
std::int64_t model_server::count_of(const connection& of, reach how) {
  return std::count_if(of.channels.begin(), of.channels.end(), [&](const auto& c) { return c.second == how; });
}

// Who would be told where that slot is now.
std::optional<std::string> model_server::moved(const std::string& channel) const {
  auto why = tell_.refuses ? tell_.refuses(channel) : std::nullopt;
  return why && why->starts_with("MOVED") ? why : std::nullopt;
}

void model_server::lose_slot(int slot) {
  for (auto& [id, c] : connections_) {
    for (auto it = c.channels.begin(); it != c.channels.end();) {
      const auto [channel, how] = *it;
      if (how != reach::shard || script::slot_of(channel) != slot) {
        ++it;
        continue;
      }
      it = c.channels.erase(it);
      redis_.unsubscribe(channel, how);
      append(c.output, resp::value::array{std::string{"sunsubscribe"}, channel, count_of(c, how)});
    }
  }
  flush();
}

void model_server::spread_messages() {
  for (const auto& said : redis_.take_messages()) {
    tell_subscribers(said);
    if (said.how == reach::everywhere && tell_.on_said) tell_.on_said(said.channel, said.text);
  }
}

void model_server::tell_subscribers(const model_redis::message& said) {
  const std::string kind = said.how == reach::shard ? "smessage" : "message";
  for (auto& [id, to] : connections_) {
    if (!to.channels.contains({said.channel, said.how})) continue;
    append(to.output, resp::value::array{kind, said.channel, said.text});
  }
}

void model_server::hear(const std::string& channel, const std::string& text) {
  if (!is_up()) return;
  tell_subscribers({channel, text});
  flush();
}

void model_server::flush() {
  for (auto& [id, to] : connections_) {
    if (to.output.empty()) continue;
    network_->server_sends(id, to.output);
    to.output.clear();
  }
}

}  // namespace holdfast::sim
