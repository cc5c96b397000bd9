// SPDX-License-Identifier: Apache-2.0
// What is to be seen of a quorum: one lock, and all locks.
#include "client/diagnose.hpp"
#include "client/quorum.hpp"
#include "client/quorum_break.hpp"
#include "client/survey.hpp"
#include "core/quorum_votes.hpp"
#include "engine/quorum_question.hpp"
#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "script/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

// Until each of them is connected, or one try has failed. To a server that is far away the first connection takes
// several round trips, and behind the answers of the others it would be given up in the middle. The question is to
// take it one: NOSCRIPT would cost another.
class first_connections final : public engine::quorum_call {
public:
  first_connections(engine::voters& all, time_point now, duration at_most)
      : quorum_call{all}, give_up_at_{now + std::min(patience, at_most)}, is_short_{at_most < patience} {}

  void step(time_point now) override {
    bool is_settled = true;
    for (const auto& one : all()) {
      if (one->wire().is_ready()) {
        one->wire().load(now, script::id::inspect);
      } else {
        is_settled = is_settled && one->is_hopeless();
      }
    }
    is_over_ = is_settled || now >= give_up_at_;
    if (is_settled || !is_over_ || is_short_) return;
    // Whoever asks next does not wait for them again. Who had less time than they may take has found nothing out.
    for (const auto& one : all()) {
      if (!one->wire().is_ready()) one->found_slow();
    }
  }
  time_point wake_at() const override { return give_up_at_; }
  bool is_over() const override { return is_over_; }

private:
  static constexpr duration patience = 1s;

  time_point give_up_at_;
  bool is_short_;
  bool is_over_ = false;
};

// What the servers said, by the grant that they said it of.
struct grant {
  std::vector<std::size_t> nodes{};
  std::vector<holder_info> seen{};  // Endless: the largest `remaining` that there is.
  bool foreign = false;

  void add(std::size_t node, holder_info one) {
    nodes.push_back(node);
    seen.push_back(std::move(one));
  }
};

holder_info held_by(const grant& votes, std::size_t needed) {
  holder_info out = votes.seen.front();
  std::map<std::uint64_t, std::size_t> tokens;
  std::vector<milliseconds> remaining;
  for (const auto& one : votes.seen) {
    ++tokens[one.token.value()];
    remaining.push_back(one.remaining);
    out.held_for = std::max(out.held_for, one.held_for);
    out.breaking = out.breaking || one.breaking;
  }
  // The token that most of them have; a server that was asked later may have needed a larger one.
  const auto most =
      std::max_element(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  out.token = fencing_token{most->first};
  std::sort(remaining.begin(), remaining.end(), std::greater{});
  out.remaining = remaining[std::min(needed, remaining.size()) - 1];
  return out;
}

holder_info alone_by(const lock_info& info) {
  return {.owner = info.owner,
          .token = info.token,
          .ttl = info.ttl,
          .remaining = info.endless ? milliseconds::max() : info.remaining,
          .held_for = info.held_for,
          .breaking = info.breaking};
}

// What a name is used as: its kind, and the size of a semaphore.
using usage = std::pair<lock_kind, int>;

struct survey {
  std::vector<node_info> nodes;
  std::vector<errc> codes;  // Of their troubles; none: it has none, or none of its own.
  milliseconds took{0};
  std::map<std::string, grant> grants;
  std::map<usage, std::size_t> usages;
  // Of a counted kind what each of those that answered says is taken, also by those whom it does not list.
  std::vector<int> taken;
  std::vector<bool> is_cut;     // Of each of them: it has more holders than it lists,
  std::vector<bool> is_unread;  // or some of whom nothing is known.
  std::optional<break_record> last_break;
  std::size_t answered = 0;
  std::string wrong_kind{};  // What the key holds at one of them, if it is none of ours.
  std::size_t have_wrong_kind = 0;
  std::string other_list{};  // What one says that belongs to another list of servers.
  std::size_t have_other_list = 0;
  bool is_unopened = false;  // Ours is not open at one of them yet.

  bool is_of_wrong_kind() const { return have_wrong_kind > nodes.size() / 2; }
  // Who may have given their vote to one of whom they do not say so.
  std::size_t unread_but(const std::vector<std::size_t>& voters) const {
    auto may_have = is_unread;
    for (const auto node : voters) may_have[node] = false;
    return static_cast<std::size_t>(std::count(may_have.begin(), may_have.end(), true));
  }
  bool is_any_cut() const { return std::find(is_cut.begin(), is_cut.end(), true) != is_cut.end(); }
  // What most of them say.
  usage used_as() const {
    const auto most = std::max_element(usages.begin(), usages.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == usages.end() ? usage{lock_kind::exclusive, 0} : most->first;
  }
};

bool is_later(const break_record& one, const std::optional<break_record>& than) {
  if (!than || one.token.value() != than->token.value()) return !than || one.token.value() > than->token.value();
  return one.since < than->since;
}

void add_answer(survey& out, std::size_t node, node_info& shown, const script::inspect_reply& reply) {
  ++out.answered;
  const auto info = info_of({}, reply);
  ++out.usages[{info.kind, info.size}];
  if (info.last_break && is_later(*info.last_break, out.last_break)) out.last_break = info.last_break;
  out.taken.push_back(info.permits_held);
  out.is_cut[node] = reply.holders.size() >= holders_listed;
  out.is_unread[node] = reply.foreign_for.has_value();
  if (!info.held) return;
  shown.owner = info.owner;
  shown.token = info.token;
  shown.remaining = info.remaining;
  shown.holders = reply.held                       ? 1
                  : info.kind == lock_kind::shared ? info.permits_held
                                                   : static_cast<int>(reply.holders.size());
  if (reply.held || info.foreign) {
    auto& votes = out.grants[reply.held ? reply.held->id : std::string{}];
    votes.foreign = info.foreign;
    votes.add(node, alone_by(info));
  }
  for (std::size_t i = 0; i < reply.holders.size(); ++i) out.grants[reply.holder_ids[i]].add(node, reply.holders[i]);
}

// Nothing of ours is held there, or nobody knows: whoever asks with a list that was replaced, or is not open yet, is
// not told "free" of what others hold (P26).
void add_other_list(survey& out, node_info& shown, const std::string& kept, const script::quorum_record& ours) {
  shown.trouble = script::why_it_does_not_count(kept, ours);
  if (script::is_not_open_yet(kept, ours)) {
    out.is_unopened = true;
  } else {
    out.other_list = shown.trouble;
    ++out.have_other_list;
  }
}

survey ask_all(client_state& state, const script::command& what, milliseconds timeout) {
  auto& of = *state.of_quorum();
  const time_point began_at = boottime_now();
  // Half of the time is for the answers.
  first_connections greeting{of.votes().all(), began_at, duration{timeout} / 2};
  of.votes().run(greeting);
  engine::quorum_question call{of.votes().all(), {what}, 300ms, began_at + timeout};
  of.votes().run(call);
  const time_point now = boottime_now();
  survey out;
  out.is_cut.resize(of.size());
  out.is_unread.resize(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    node_info node;
    node.endpoint = of.name(i);
    node.trouble = call.trouble(i);
    auto code = call.trouble_code(i);
    if (const auto& found = call.quarantine_of(i)) {
      node.quarantine = std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(found->ends_at - now));
    }
    const auto& reply = call.reply(i);
    const auto parsed = reply ? script::parse_inspect(*reply) : std::nullopt;
    if (reply && reply->as_error()) {
      node.trouble = reply->as_error()->text;
      code = script::classify(node.trouble).code;
    } else if (parsed && !parsed->wrong_kind.empty()) {
      node.trouble = "the key holds a " + parsed->wrong_kind;
      out.wrong_kind = parsed->wrong_kind;
      ++out.have_wrong_kind;
    } else if (parsed && parsed->other_record) {
      add_other_list(out, node, *parsed->other_record, of.record());
    } else if (parsed) {
      add_answer(out, i, node, *parsed);
    }
    out.nodes.push_back(std::move(node));
    out.codes.push_back(code);
  }
  out.took = std::chrono::duration_cast<milliseconds>(now - began_at);
  return out;
}

survey ask_all(client_state& state, const lock_name& name, milliseconds timeout) {
  const auto what = script::inspect_vote(state.keys_of(name), state.options().prefix, state.of_quorum()->record());
  return ask_all(state, what, timeout);
}

// They are there, and starting them does not help.
void fail_if_refused(const client_state& state, const survey& seen) {
  const auto is_refusal = [](const std::error_code& code) {
    return code == outcome::denied || code == outcome::misconfigured;
  };
  const auto first = std::find_if(seen.codes.begin(), seen.codes.end(), is_refusal);
  const auto count = std::count_if(seen.codes.begin(), seen.codes.end(), is_refusal);
  if (2 * count < static_cast<std::ptrdiff_t>(seen.codes.size())) return;
  const auto& one = seen.nodes[static_cast<std::size_t>(first - seen.codes.begin())];
  error_detail detail;
  detail.elapsed = seen.took;
  detail.server_text = one.endpoint + ": " + one.trouble;
  state.fail(*first, std::move(detail));
}

[[noreturn]] void fail_too_few(const client_state& state, const lock_name& name, const survey& seen) {
  if (seen.is_of_wrong_kind()) state.fail_wrong_kind(state.keys_of(name), seen.wrong_kind);
  fail_if_refused(state, seen);
  error_detail detail;
  detail.elapsed = seen.took;
  if (!seen.other_list.empty()) {
    detail.server_text = seen.other_list;
    state.fail(errc::other_quorum, std::move(detail));
  }
  std::size_t without = 0;
  for (const auto& one : seen.nodes) {
    if (one.trouble.empty()) continue;
    ++without;
    detail.why += fmt::format("{}{}: {}", detail.why.empty() ? "" : "; ", one.endpoint, one.trouble);
  }
  detail.why = fmt::format("{} of {} servers {}: {}", without, seen.nodes.size(),
                           seen.is_unopened ? "gave no answer" : "did not answer", detail.why);
  state.fail(seen.is_unopened ? errc::quarantined : errc::no_quorum, std::move(detail));
}

}  // namespace

namespace {

// Each server lists others of them, perhaps none that enough others list. A hold is counted by as many as it needs, so
// they say how many there are at least.
void count_unlisted(lock_info& info, const survey& seen, std::size_t needed) {
  auto taken = seen.taken;
  std::sort(taken.begin(), taken.end(), std::greater{});
  info.permits_held = std::max(info.permits_held, taken[std::min(needed, taken.size()) - 1]);
  if (info.holders.size() > holders_listed) info.holders.resize(holders_listed);
  if (info.held || info.permits_held == 0) return;
  const auto most = std::max_element(seen.grants.begin(), seen.grants.end(), [](const auto& a, const auto& b) {
    return a.second.nodes.size() < b.second.nodes.size();
  });
  info.holders.push_back(held_by(most->second, needed));
  show_holder(info, info.holders.front());
}

lock_info info_of(const client_state& state, const lock_name& name, survey seen) {
  const std::size_t majority = seen.nodes.size() / 2 + 1;
  if (seen.answered < majority) fail_too_few(state, name, seen);
  const std::size_t silent = seen.nodes.size() - seen.answered;
  lock_info info;
  const auto [kind, room] = seen.used_as();
  info.kind = kind;
  info.size = room;
  const auto all = static_cast<int>(seen.nodes.size());
  const auto needed =
      kind == lock_kind::semaphore && room > 0 ? static_cast<std::size_t>(core::votes_for(all, room)) : majority;
  for (const auto& [id, votes] : seen.grants) {
    // Those that did not answer, or cannot be read, may have given it theirs: to say "free" of what is held would be
    // the worse mistake.
    if (votes.nodes.size() + silent + seen.unread_but(votes.nodes) < needed) continue;
    auto holder = held_by(votes, needed);
    const bool is_endless = holder.remaining == milliseconds::max();
    if (is_endless) holder.remaining = milliseconds{0};
    if (kind != lock_kind::exclusive && !votes.foreign) {
      info.holders.push_back(holder);
      continue;
    }
    show_holder(info, holder);
    info.endless = is_endless;
    info.foreign = votes.foreign;
    if (kind == lock_kind::exclusive && votes.nodes.size() >= needed) break;
  }
  if (kind != lock_kind::exclusive && !info.holders.empty()) {
    std::sort(info.holders.begin(), info.holders.end(),
              [](const holder_info& a, const holder_info& b) { return a.remaining < b.remaining; });
    show_holder(info, info.holders.front());
    info.foreign = false;
    for (const auto& one : info.holders) info.permits_held += kind == lock_kind::semaphore ? one.permits : 1;
  }
  if (seen.is_any_cut() || seen.unread_but({}) > 0) count_unlisted(info, seen, needed > silent ? needed - silent : 1);
  info.name = name.text();
  info.last_break = seen.last_break;
  std::vector<milliseconds> quarantines;
  for (const auto& one : seen.nodes) {
    if (one.trouble.empty()) quarantines.push_back(one.quarantine);
  }
  std::sort(quarantines.begin(), quarantines.end());
  info.quarantine = quarantines[std::min(needed, quarantines.size()) - 1];
  info.nodes = std::move(seen.nodes);
  return info;
}

}  // namespace

lock_info inspect_quorum(client_state& state, std::string_view text, milliseconds timeout) {
  const lock_name name = state.name_of(text);
  return info_of(state, name, ask_all(state, name, timeout));
}

namespace {

// Each question waits a little for a minority that is slow: many of them at once wait for it together.
std::vector<survey> ask_of_each(client_state& state, const std::vector<lock_name>& names) {
  constexpr std::size_t at_once = 32;
  std::vector<survey> all(names.size());
  for (std::size_t from = 0; from < names.size(); from += at_once) {
    const auto count = std::min(at_once, names.size() - from);
    std::vector<std::exception_ptr> failures(count);
    net::run_each_quietly(count, [&](std::size_t i) {
      try {
        all[from + i] = ask_all(state, names[from + i], state.options().timeout);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
    for (const auto& one : failures) {
      if (one) std::rethrow_exception(one);
    }
  }
  return all;
}

}  // namespace

std::vector<lock_info> list_quorum(client_state& state, std::string_view glob) {
  auto& of = *state.of_quorum();
  // Connects, and says who is there.
  const auto no_lock = state.name_of("holdfast-list");
  const auto there = ask_all(state, no_lock, state.options().timeout);
  if (there.answered < there.nodes.size() / 2 + 1) fail_too_few(state, no_lock, there);
  // What is foreign wherever it is has no votes to be counted.
  struct listed {
    std::optional<lock_info> lock{};
    std::optional<lock_info> foreign{};
  };
  std::map<std::string, listed> found;
  std::size_t told = 0;
  std::optional<error> first;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!there.nodes[i].trouble.empty()) continue;
    try {
      for (auto& one : list(*of.client_of(i), glob)) {
        auto& known = found[one.name];
        (one.foreign ? known.foreign : known.lock) = std::move(one);
      }
      ++told;
    } catch (const error& e) {
      if (!first) first = e;
    }
  }
  // What is held is on one of each majority.
  if (first && told < of.size() / 2 + 1) throw error{*first};
  std::vector<lock_name> names;
  for (const auto& [name, one] : found) {
    if (one.lock) names.push_back(state.name_of(name));
  }
  auto surveys = ask_of_each(state, names);
  std::size_t asked = 0;
  std::vector<lock_info> all;
  for (auto& [name, one] : found) {
    if (one.lock) {
      const auto& its_name = names[asked];
      auto& seen = surveys[asked++];
      // Where a majority has said what it holds, and too few of them a lock, it is none.
      const std::size_t majority = seen.nodes.size() / 2 + 1;
      const bool is_none = seen.answered < majority && seen.answered + seen.have_wrong_kind >= majority;
      auto info = is_none ? lock_info{} : info_of(state, its_name, std::move(seen));
      if (info.held) {
        all.push_back(std::move(info));
        continue;
      }
    }
    if (one.foreign) all.push_back(*std::move(one.foreign));
  }
  return all;
}

namespace {

// Who has more holders than it lists may have this one, too, under `token` or another: it is asked, and says whether it
// has.
votes_seen votes_of(const survey& seen, const std::string& grant_id, fencing_token token) {
  votes_seen out;
  std::vector<bool> is_listed(seen.nodes.size());
  if (const auto found = seen.grants.find(grant_id); found != seen.grants.end()) {
    const auto& votes = found->second;
    for (std::size_t i = 0; i < votes.nodes.size(); ++i) {
      out.votes.push_back({votes.nodes[i], votes.seen[i].token});
      is_listed[votes.nodes[i]] = true;
    }
  }
  for (std::size_t i = 0; i < seen.nodes.size(); ++i) {
    const auto& one = seen.nodes[i];
    if (!one.trouble.empty()) out.silent.push_back({i, one.endpoint + ": " + one.trouble});
    if (seen.is_cut[i] && !is_listed[i]) out.votes.push_back({i, token});
  }
  return out;
}

}  // namespace

// On each server that has it, under the token that it has there: a minority's vote that is left unbroken is no lock.
void break_on_quorum(client_state& state, std::string_view text, fencing_token seen, const break_options& options) {
  const lock_name name = state.name_of(text);
  const auto look = [&] { return ask_all(state, name, state.options().timeout); };
  const auto now = look();
  error_detail detail;
  detail.subject = "'" + name.text() + "'";
  if (now.answered < now.nodes.size() / 2 + 1) fail_too_few(state, name, now);
  if (now.grants.empty()) state.fail(errc::not_held, std::move(detail));
  std::string whose;
  for (const auto& [id, votes] : now.grants) {
    const bool is_it =
        std::any_of(votes.seen.begin(), votes.seen.end(), [&](const auto& v) { return v.token == seen; });
    if (is_it) whose = id;
  }
  if (whose.empty() && !now.is_any_cut()) state.fail(errc::changed_hands, std::move(detail));
  break_votes(
      state, name, votes_of(now, whose, seen), [&] { return votes_of(look(), whose, seen); }, options);
}

// A list that was replaced at a majority grants nothing, whatever its servers remember.
void declare_on_quorum(client_state& state) {
  auto& of = *state.of_quorum();
  const auto seen = ask_all(state, state.name_of(probe_of(state)), state.options().timeout);
  if (seen.have_other_list > seen.nodes.size() / 2) state.fail(errc::other_quorum, {.server_text = seen.other_list});
  std::optional<error> first;
  for (std::size_t i = 0; i < of.size(); ++i) {
    try {
      of.client_of(i)->declare_nothing_forgotten();
    } catch (const error& e) {
      if (!first) first = e;
    }
  }
  if (first) throw error{*first};
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
