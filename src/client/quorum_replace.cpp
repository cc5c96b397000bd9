// SPDX-License-Identifier: Apache-2.0
// From one list of servers to the next (P26): close a majority of the old list, wait until no lease of it can be left,
// open the new list. Each step is a compare-and-set of the servers' records, so that it can be repeated, and two who do
// it at once cannot both get through.
#include "client/quorum.hpp"
#include "client/quorum_replacement.hpp"
#include "net/clock.hpp"
#include "script/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using script::quorum_record;
using std::chrono::milliseconds;
using step = replace_progress::step;

namespace {

[[noreturn]] void refuse(errc code, std::string subject, std::string why) {
  error_detail detail;
  detail.subject = std::move(subject);
  detail.why = std::move(why);
  throw error{code, std::move(detail)};
}

settings resolve_quorum(std::string_view uri, const client_options& options) {
  auto out = resolve(uri, options);
  if (!out.server.quorum.empty()) return out;
  refuse(errc::invalid_uri, out.server.display, "it names no quorum; write redis+quorum://A,B,C");
}

}  // namespace

replacement::replacement(const settings& from, const settings& to, const replace_options& how)
    : how_{how}, from_{from.server.display}, prefix_{from.options.prefix}, old_{record_of(from)} {
  if (to.server.database != from.server.database)
    refuse(errc::invalid_uri, to.server.display, "another database has other locks; name the one of " + from_);
  open_ = record_of(to);
  if (open_.servers == old_.servers && !how.reopen) {
    refuse(errc::invalid_uri, to.server.display,
           "the list has the same servers; if they have lost their data and nothing is granted any more: --reopen");
  }
  if (open_.generation != 1 && open_.generation != old_.generation + 1) {
    refuse(errc::invalid_uri, to.server.display,
           fmt::format("its generation must be {}, one more than that of {}; or leave it out", old_.generation + 1,
                       from_));
  }
  if (old_.generation == script::most_generations) refuse(errc::invalid_uri, from_, "no generation can follow it");
  const auto other_query = to.server.display.find('?');
  open_.generation = old_.generation + 1;
  uri_ = to.server.display.substr(0, other_query) + "?generation=" + std::to_string(open_.generation);
  closed_ = open_;
  closed_.is_open = false;
  const auto add = [&](const settings& list, bool member::*which) {
    for (std::size_t i = 0; i < list.server.quorum.size(); ++i) {
      const auto one = single_server(list, i);
      const auto name = text_of(std::get<net::tcp_address>(one.server.where.where));
      auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m.name == name; });
      if (found == members_.end()) {
        members_.push_back({.name = name, .state = client_state::make(one)});
        found = std::prev(members_.end());
      }
      (*found).*which = true;
    }
  };
  add(from, &member::is_old);
  add(to, &member::is_new);
  std::sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

// False: it keeps something else by now, which was noted.
bool replacement::write(member& at, const quorum_record& record) const {
  const auto keys = at.state->keys_of(at.state->name_of("holdfast-quorum"));
  const auto reply =
      at.state->ask(keys, script::write_record(prefix_, record, at.kept), engine::question::repeat::allowed);
  at.state->throw_if_error(reply, "key '" + script::quorum_key(prefix_) + "'");
  const auto said = script::parse_record_reply(reply);
  if (!said) at.state->fail(errc::unexpected_reply, {});
  at.kept = said->instead ? *said->instead : text_of(record);
  return !said->instead;
}

// `tell` is called behind it: what that throws is not about a server.
bool replacement::write_or_leave_out(member& at, const quorum_record& record) const {
  try {
    return write(at, record);
  } catch (const error& e) {
    leave_out(at, e);
    return false;
  }
}

// An earlier call has, if what it closed and what it opened still is so. That something is open says that somebody
// waited once; old servers that forgot since then that they were closed have voted, and who closed them again may have
// been killed before he waited. That a majority is open makes nothing of it undone: the new list has granted since.
bool replacement::had_waited() const {
  return is_majority(&member::is_old, count(&member::is_old, {standing::closed, standing::opened})) &&
         is_majority(&member::is_new, count(&member::is_new, {standing::opened}));
}

// One after the other: of two who begin at the same time with other lists one stops at the first server that both
// reach.
void replacement::close_all() {
  for (auto& one : members_) {
    // A client of the old list may write its record meanwhile.
    while (one.is_old && of(one) == standing::before) {
      if (write_or_leave_out(one, closed_)) tell({step::closed, one.name, {}, {}});
    }
    if (of(one) == standing::other) fail_for_other(one);
  }
  require_majority(&member::is_old, count(&member::is_old, {standing::closed, standing::opened}),
                   "are closed; those that are stay so: start the others and call again");
}

// By any clock no lease of the old list lives longer than this after a majority was closed: what was renewed last was
// renewed before.
void replacement::wait() {
  auto hold = hold_of(how_.client);
  for (const auto& one : members_) {
    if (one.is_old) hold = std::max(hold, one.hold);
  }
  const auto began = boottime_now();
  const auto until = began + hold;
  tell({step::waits, {}, {}, hold});
  std::mutex mutex;
  std::condition_variable_any news;
  std::unique_lock held{mutex};
  while (boottime_now() < until && !how_.cancel.stop_requested()) {
    (void)news.wait_for(held, how_.cancel, until - boottime_now(), [] { return false; });
  }
  waited_ += std::chrono::duration_cast<milliseconds>(boottime_now() - began);
  if (!how_.cancel.stop_requested()) return;
  error_detail detail;
  detail.endpoint = from_;
  detail.why = "its servers are closed, and the new list is not open: call again, and it goes on";
  throw error{errc::cancelled, std::move(detail)};
}

// Who lost its data meanwhile would vote for the old list again, so it is closed again, and what it may have granted is
// waited for.
void replacement::wait_while_closed() {
  for (bool is_still_closed = false; !is_still_closed;) {
    wait();
    look_at_all();
    is_still_closed = is_majority(&member::is_old, count(&member::is_old, {standing::closed, standing::opened}));
    close_all();
  }
}

void replacement::open_all() {
  for (auto& one : members_) {
    if (!one.is_new) continue;
    if (one.is_away) look(one);
    while (!one.is_away && of(one) != standing::opened && script::may_open(one.kept, open_)) {
      if (write_or_leave_out(one, open_)) tell({step::opened, one.name, {}, {}});
    }
  }
  require_majority(&member::is_new, count(&member::is_new, {standing::opened}),
                   "are open for the new list, so that nobody can have a lock: start the others and call again");
}

quorum_replacement replacement::run() {
  look_at_all();
  require_apart();
  require_known();
  const auto anything_but_away = {standing::before, standing::closed, standing::opened};
  require_majority(&member::is_old, count(&member::is_old, anything_but_away), "answered, and nothing was changed");
  require_majority(&member::is_new, count(&member::is_new, anything_but_away), "answered, and nothing was changed");
  require_in_use();
  for (const auto& one : members_) {
    if (one.is_away) tell({step::away, one.name, one.trouble, {}});
  }
  const bool is_through = had_waited();  // Who closes now has not waited yet.
  close_all();
  if (is_through) {
    tell({step::goes_on, {}, {}, {}});
  } else {
    wait_while_closed();
  }
  open_all();
  quorum_replacement done;
  done.uri = uri_;
  done.generation = open_.generation;
  done.closed = names(&member::is_old, {standing::closed, standing::opened});
  done.opened = names(&member::is_new, {standing::opened});
  for (const auto& one : members_) {
    if (one.is_away) done.away.push_back(one.name);
  }
  done.waited = waited_;
  return done;
}

}  // namespace detail

quorum_replacement replace_quorum(std::string_view from, std::string_view to, const replace_options& options) {
  const auto before = detail::resolve_quorum(from, options.client);
  const auto after = detail::resolve_quorum(to, options.client);
  return detail::replacement{before, after, options}.run();
}

}  // namespace v0
}  // namespace holdfast
