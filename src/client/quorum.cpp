// SPDX-License-Identifier: Apache-2.0
#include "client/quorum.hpp"

#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/stop_watch.hpp"
#include "client/turn_watch.hpp"
#include "engine/quorum_question.hpp"
#include "engine/quorum_release.hpp"
#include "net/clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

std::vector<std::string> names_of(const settings& of_quorum) {
  std::vector<std::string> out;
  for (const auto& one : of_quorum.server.quorum) out.push_back(text_of(std::get<net::tcp_address>(one.where)));
  return out;
}

duration patience_of(std::chrono::milliseconds ttl, std::chrono::milliseconds timeout) {
  using namespace std::chrono_literals;
  const auto wanted = std::clamp<duration>(duration{ttl} / 20, 50ms, 300ms);
  return std::min<duration>({wanted, duration{ttl} / 4, timeout});
}

// The list's order is that of the URI as it is read, which is sorted.
script::quorum_record record_of(const settings& of_quorum) {
  script::quorum_record out{.generation = of_quorum.server.generation};
  for (const auto& one : names_of(of_quorum)) out.servers += (out.servers.empty() ? "" : ",") + one;
  return out;
}

settings single_server(const settings& of_quorum, std::size_t node) {
  settings one = of_quorum;
  one.server.where = one.server.quorum[node];
  one.server.quorum.clear();
  one.server.generation = 1;
  one.server.display = (one.server.where.uses_tls ? "rediss://" : "redis://") + names_of(of_quorum)[node];
  if (one.server.database != 0) one.server.display += "/" + std::to_string(one.server.database);
  one.options.log = nullptr;
  one.options.observe = nullptr;
  one.is_quorum_member = true;
  return one;
}

namespace {

std::shared_ptr<reporter> reporter_of(const settings& from, std::size_t node, const reporter& of_all) {
  const std::string scheme = from.server.quorum[node].uses_tls ? "rediss://" : "redis://";
  return std::make_shared<reporter>(of_all, scheme + names_of(from)[node]);
}

std::vector<vote_connections::server> servers_of(const settings& from, const engine::channel::settings& how,
                                                 const reporter& of_all,
                                                 const std::shared_ptr<quorum_keeper_thread>& keeper) {
  const auto names = names_of(from);
  std::vector<vote_connections::server> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto tell = reporter_of(from, i, of_all);
    out.push_back({names[i],
                   from.server.quorum[i],
                   how,
                   {[tell] { tell->on_up(); }, [tell](const engine::connection_failure& f) { tell->on_down(f); },
                    [tell, i, keeper = std::weak_ptr{keeper}](duration step, const core::server_clock& seen) {
                      tell->on_clock_step(step);
                      if (const auto k = keeper.lock()) k->on_step_seen(i, step, seen);
                    }}});
  }
  return out;
}

std::shared_ptr<quorum_keeper_thread> keeper_for(const settings& from, const engine::channel::settings& how,
                                                 core::clock_drift drift, const std::shared_ptr<reporter>& tell) {
  engine::quorum_keeper::settings s{{}, drift, from.options.prefix, record_of(from), from.options.max_ttl};
  quorum_keeper_thread::listeners of_nodes;
  for (std::size_t i = 0; i < from.server.quorum.size(); ++i) {
    s.nodes.push_back(how);
    of_nodes.push_back(reporter_of(from, i, *tell));
  }
  return std::make_shared<quorum_keeper_thread>(from.server.quorum, std::move(s), net::system_random(),
                                                std::move(of_nodes), tell);
}

}  // namespace

quorum::quorum(const settings& from, const engine::channel::settings& commands, const engine::channel::settings& keeper,
               core::clock_drift drift, const std::shared_ptr<reporter>& tell)
    : from_{from},
      drift_{drift},
      record_{record_of(from)},
      names_{names_of(from)},
      keeper_{keeper_for(from, keeper, drift, tell)},
      votes_{servers_of(from, commands, *tell, keeper_), net::system_random()},
      clients_(from.server.quorum.size()),
      turns_(from.server.quorum.size()) {}

quorum::~quorum() = default;

void quorum::close(duration at_most, bool wait) noexcept {
  errands_->close(wait);
  keeper_->close(at_most, wait);
  for (auto& one : turns_) {
    if (one.line && wait) one.line->close_and_wait();
    one = {};
  }
  for (auto& one : clients_) {
    if (one && wait) one->close_and_wait();
    one.reset();
  }
}

// ---- clients of one server ----

std::shared_ptr<client_state> quorum::client_of(std::size_t node) {
  const std::lock_guard held{mutex_};
  if (!clients_[node]) clients_[node] = client_state::make(single_server(from_, node));
  return clients_[node];
}

// Two who have their turn at the same time harm nobody: the votes decide. So it needs no quarantine.
quorum::turn quorum::turn_of(std::size_t node) {
  const std::lock_guard held{mutex_};
  if (turns_[node].line) return turns_[node];
  auto how = single_server(from_, node);
  how.options.prefix += "turn:";
  how.options.quarantine = quarantine_mode::trust_every_write_is_synced;
  // One that is silent is given up for the next one's line.
  how.options.timeout = std::min<std::chrono::milliseconds>(how.options.timeout, std::chrono::seconds{2});
  how.has_alternative = true;
  how.has_quiet_keeper = true;  // Who waits in line waits on the connection for commands.
  const auto watch = std::make_shared<turn_watch>();
  how.options.observe = watch;
  return turns_[node] = {client_state::make(how), watch};
}

// ---- what the threads of one process tell each other ----

void quorum::tell_released(const script::lock_keys& what) noexcept {
  const std::lock_guard held{mutex_};
  for (auto& one : pausing_) {
    if (*one.key != what.holder) continue;
    one.is_told = true;
    one.news.post();
  }
}

void quorum::wait_for_release(const script::lock_keys& of, duration at_most, const std::stop_token& cancel) {
  const time_point until = boottime_now() + at_most;
  pausing me{of.holder};
  const stop_watch stop{cancel, me.news};
  std::unique_lock held{mutex_};
  pausing_.push_back(me);
  while (!me.is_told && !stop.is_stopped() && boottime_now() < until) {
    held.unlock();
    me.news.wait_until(until);
    held.lock();
  }
  pausing_.erase(pausing_.iterator_to(me));
}

// ---- release ----

last_votes quorum::let_go(lease_record& record) {
  const time_point now = boottime_now();
  last_votes had{{}, now + record.deadline.left(now)};
  had.votes = keeper_->let_go(record);
  record.deadline.end();
  return had;
}

release_outcome quorum::release(const lease_record& record, const last_votes& had, time_point give_up_at) {
  if (had.votes.of_each.empty() || had.deadline <= boottime_now()) {
    release_in_background(record, {{}, had.deadline});
    return release_outcome::already_lost;
  }
  engine::quorum_release call{votes_.all(), record.keys, record.owner, had.votes, std::min(give_up_at, had.deadline)};
  votes_.run(call);
  std::vector<bool> is_settled;
  for (std::size_t i = 0; i < size(); ++i) is_settled.push_back(call.is_settled(i));
  let_go_in_background(record, had.votes.of_each, is_settled);
  tell_released(record.keys);
  return call.end();
}

void quorum::release_in_background(const lease_record& record, const last_votes& had) {
  const auto& votes = had.votes.of_each;
  std::vector<bool> is_settled(size(), false);
  for (std::size_t i = 0; i < votes.size(); ++i) is_settled[i] = !votes[i].token && votes[i].not_after == server_time{};
  let_go_in_background(record, votes.empty() ? std::vector<engine::quorum_vote>(size()) : votes, is_settled);
  tell_released(record.keys);
}

// ---- downgrade ----

namespace {

// However the question ends, votes are asked for again: as a reader's, unless it is certain that it is a writer's
// still. Then a vote as a reader's would let others read beside it.
struct narrowing {
  narrowing(quorum_keeper_thread& at, const lease_record& what)
      : keeper{&at}, record{&what}, tokens{at.begin_narrowing(what)} {}
  ~narrowing() {
    try {
      keeper->end_narrowing(*record, stays ? std::nullopt : std::optional{reading});
    } catch (...) {
      // No memory to mend at once what is missing: the next renewal does it.
    }
  }
  narrowing(const narrowing&) = delete;
  narrowing& operator=(const narrowing&) = delete;

  quorum_keeper_thread* keeper;
  const lease_record* record;
  std::vector<fencing_token> tokens;
  bool stays = true;  // Until it is asked.
};

}  // namespace

bool quorum::downgrade(const lease_record& record, time_point give_up_at) {
  std::vector<script::command> each;
  // A vote that came behind the round, or was given again, has a token of its own.
  narrowing under_way{*keeper_, record};
  for (const auto token : under_way.tokens) {
    each.push_back(script::downgrade(record.keys, record.owner, token ? token : record.grant));
  }
  if (each.empty()) return false;
  engine::quorum_question call{votes_.all(), std::move(each), patience_of(record.ttl, from_.options.timeout),
                               give_up_at};
  under_way.stays = false;
  votes_.run(call);
  std::size_t done = 0;
  std::size_t gone = 0;
  bool is_open = false;  // There is one of which nobody knows.
  std::vector<std::string> troubles(size());
  for (std::size_t i = 0; i < size(); ++i) {
    troubles[i] = call.trouble(i);
    is_open = is_open || call.may_have_done(i);
    if (!call.reply(i)) continue;
    const auto said = script::parse_release(*call.reply(i));
    is_open = is_open || (!said && !call.reply(i)->as_error());
    const bool is_done = said && said->what == script::release_answer::released;
    done += is_done ? 1 : 0;
    gone += said && !is_done ? 1 : 0;
    if (is_done) continue;
    const auto* text = call.reply(i)->as_error();
    troubles[i] = text ? text->text : "has nothing of it";
  }
  tell_released(record.keys);
  if (done > size() / 2) return true;
  if (gone > size() / 2) return false;
  error_detail detail;
  detail.subject = "'" + record.name + "'";
  detail.why = report(troubles, "did not do it");
  if (done == 0 && !is_open) {
    under_way.stays = true;
    throw error{errc::no_quorum, std::move(detail)};
  }
  detail.why += "; what has taken effect stays: call again";
  throw error{errc::reply_lost, std::move(detail)};
}

void quorum::let_go_in_background(const lease_record& record, const std::vector<engine::quorum_vote>& votes,
                                  const std::vector<bool>& is_settled) {
  const time_point now = boottime_now();
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_settled[i]) continue;
    const auto& vote = votes[i];
    const bool may_come = vote.not_after != server_time{} && now < vote.not_after_local;
    keeper_->release_later(i, {record.keys,
                               record.owner,
                               {},
                               may_come ? vote.not_after : server_time{},
                               may_come ? vote.not_after_local : time_point{},
                               std::max(now, vote.not_after_local) + record.ttl + client_state::after_ttl});
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
