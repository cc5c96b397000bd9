// SPDX-License-Identifier: Apache-2.0
// The model Redis behind a network: connections, RESP, subscriptions and their messages, restarts. What a connection
// may ask beyond the model's commands is a subscription; everything that the model does not know is an error.
#pragma once

#include "facts.hpp"
#include "model_redis.hpp"
#include "network.hpp"

#include "resp/reader.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sim {

class model_server final : public server_end {
public:
  struct hooks {
    std::function<lock const*(const std::string& holder_key)> find_lock{};
    std::function<int(int host)> process_of{};
    std::function<void(const script_run&)> on_script{};
    // A command that is no script of ours; and what the server said.
    std::function<void(const std::string& name, const resp::value& reply)> on_command{};
    std::function<void(const std::string& what)> trace{};
    // Of a node of a cluster: what it says to who asks for a key that it does not serve; and what was said to those who
    // have subscribed, also at others.
    std::function<std::optional<std::string>(const std::string& key)> refuses{};
    std::function<void(const std::string& channel, const std::string& text)> on_said{};
    // Of a server that others copy: its data has changed, or it is up again; and how many of them have its first
    // `writes` writes.
    std::function<void()> on_written{};
    std::function<void()> on_started{};
    std::function<int(std::uint64_t writes)> copies_of{};
  };

  // `which`: of several in one world.
  model_server(event_queue& events, wall_clock clock, std::shared_ptr<lua_host> scripts, hooks tell, int which = 0);
  void attach(network& to) { network_ = &to; }

  model_redis& redis() { return redis_; }
  const model_redis& redis() const { return redis_; }
  wall_clock& clock() { return clock_; }
  const wall_clock& clock() const { return clock_; }
  server_time now();
  server_time clock_now() const { return clock_.read(events_->now()); }

  // ---- what befalls it ----
  // Down until then, and up again with this data; it has forgotten its scripts.
  void restart(instant up_at, model_redis::keyspace data);
  void be_stuck_until(instant until) { stuck_until_ = std::max(stuck_until_, until); }
  bool is_up() const { return events_->now() >= up_at_; }
  instant up_at() const { return up_at_; }
  // The last time that it began anew, or as a primary: what it was before it may have forgotten.
  instant began_at() const { return began_at_; }
  // Sentinels tell it what it is; they end all its connections, too.
  void become_replica();
  void become_primary();
  // One more of those that copy it has what was written.
  void on_copied();
  // The keys of a lock, with what is left of their time (MIGRATE).
  void migrate(const script::lock_keys& which, model_server& to);
  // That slot is another node's now: so are the subscriptions in it.
  void lose_slot(int slot);
  // What was said at another node of its cluster.
  void hear(const std::string& channel, const std::string& text);
  // CLIENT KILL: of those that have subscribed, or of all.
  enum class kill { subscribers, all };
  void kill_clients(kill whom);
  void deny_subscribe(bool is_denied) { denies_subscribe_ = is_denied; }
  // Somebody in a redis-cli.
  resp::value operate(std::initializer_list<std::string> words);
  // Somebody breaks a lock.
  resp::value break_lock(const lock& of, const holder& whose, bool at_once);
  // On which this host listens here; empty: on none.
  std::string channel_of(int host) const;
  // Somebody publishes what he likes.
  void forge(const std::string& channel, const std::string& text);

  bool accepts() override { return is_up(); }
  void on_accepted(int id, int host) override;
  void on_bytes(int id, std::string_view bytes, instant sent_at) override;
  void on_closed(int id) override;
  instant stuck_until() override { return stuck_until_; }

private:
  using reach = model_redis::reach;
  // For replicas to have what a connection wrote.
  struct waiting {
    int copies;
    std::uint64_t writes;
    std::uint64_t number;
    instant sent_at;  // As what it came with.
  };
  struct parcel {
    std::string bytes;
    instant sent_at;
  };
  struct connection {
    int id;
    int host;
    resp::reader reader{};
    std::set<std::pair<std::string, reach>> channels{};
    std::string output{};
    std::uint64_t writes = 0;        // Of the server, when it wrote last.
    std::optional<waiting> waits{};  // Nothing is read from it meanwhile.
    std::deque<parcel> unread{};
  };

  void serve(connection& from, instant sent_at);
  void wait(connection& from, words_t words, instant sent_at);
  void end_wait(connection& from, int copies);
  resp::value answer(connection& from, words_t words, instant sent_at);
  struct asker {
    int process;
    instant sent_at;
    bool has_given_up;
  };
  resp::value answer_script(const asker& who, const lock& of, script::id which, words_t words);
  void subscribe(connection& from, words_t words);
  resp::value subscribe(connection& from, const std::string& channel, reach how);
  static std::int64_t count_of(const connection& of, reach how);
  std::optional<std::string> moved(const std::string& channel) const;
  void drop(int id);
  void spread_messages();
  void tell_subscribers(const model_redis::message& said);
  void flush();

  std::string run_id() const;
  int copies_of(std::uint64_t writes) const { return tell_.copies_of ? tell_.copies_of(writes) : 0; }
  void note_writes();

  event_queue* events_;
  int which_;
  wall_clock clock_;
  hooks tell_;
  network* network_ = nullptr;
  model_redis redis_;
  std::map<int, connection> connections_;
  std::vector<std::string> words_{};
  instant up_at_{};
  instant began_at_{};
  instant stuck_until_{};
  bool denies_subscribe_ = false;
  int runs_ = 1;
  int promotions_ = 0;
  std::uint64_t last_wait_ = 0;
  std::uint64_t seen_writes_ = 0;
};

// What the keyspace says of a lock.
std::vector<holder> holders_of(const model_redis& in, const lock& what);
// Those whose time is over too: of a replica, which keeps them until its primary has deleted them.
std::vector<holder> recorded_holders_of(const model_redis& in, const lock& what);
std::vector<line_place> line_of(const model_redis& in, const lock& what);

}  // namespace holdfast::sim
