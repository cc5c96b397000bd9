// SPDX-License-Identifier: Apache-2.0
// replace_quorum(): what engine/list_replacement decides is done here, on the connections of an ordinary client to each
// of the servers.
#include "client/quorum.hpp"
#include "client/quorum_replacement.hpp"
#include "net/clock.hpp"
#include "script/keys.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
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

std::string text_of(const settings& of_one) { return text_of(std::get<net::tcp_address>(of_one.server.where.where)); }

std::string uri_of_next(const settings& from, const settings& to) {
  const auto other_query = to.server.display.find('?');
  return to.server.display.substr(0, other_query) + "?generation=" + std::to_string(record_of(from).generation + 1);
}

engine::list_replacement flow_of(const settings& from, const settings& to, const std::string& uri,
                                 const replace_options& how) {
  const auto& name = from.server.display;
  if (to.server.database != from.server.database)
    refuse(errc::invalid_uri, to.server.display, "another database has other locks; name the one of " + name);
  const auto old = record_of(from);
  const auto next = record_of(to);
  if (next.servers == old.servers && !how.reopen) {
    refuse(errc::invalid_uri, to.server.display,
           "the list has the same servers; if they have lost their data and nothing is granted any more: --reopen");
  }
  if (next.generation != 1 && next.generation != old.generation + 1) {
    refuse(
        errc::invalid_uri, to.server.display,
        fmt::format("its generation must be {}, one more than that of {}; or leave it out", old.generation + 1, name));
  }
  if (old.generation == script::most_generations) refuse(errc::invalid_uri, name, "no generation can follow it");
  return {{old, next, name, uri, script::quorum_key(from.options.prefix), hold_of(how.client), how.reopen},
          names_of(from),
          names_of(to)};
}

}  // namespace

replacement::replacement(const settings& from, const settings& to, const replace_options& how)
    : how_{how},
      from_{from.server.display},
      prefix_{from.options.prefix},
      uri_{uri_of_next(from, to)},
      flow_{flow_of(from, to, uri_, how)} {
  for (const auto& one : flow_.members()) {
    const auto& list = one.is_old ? from : to;
    for (std::size_t i = 0; i < list.server.quorum.size(); ++i) {
      const auto alone = single_server(list, i);
      if (text_of(alone) == one.name) servers_.push_back(client_state::make(alone));
    }
  }
}

void replacement::cancelled(const char* why) const {
  error_detail detail;
  detail.endpoint = from_;
  detail.why = why;
  throw error{errc::cancelled, std::move(detail)};
}

// `tell` is called behind it: what that throws is not about a server.
void replacement::act(const flow::write& what) {
  if (!std::exchange(has_written_, true) && how_.cancel.stop_requested()) cancelled("this call has changed nothing");
  auto& at = *servers_[what.at];
  try {
    const auto keys = at.keys_of(at.name_of("holdfast-quorum"));
    const auto reply =
        at.ask(keys, script::write_record(prefix_, what.record, what.before), engine::question::repeat::allowed);
    at.throw_if_error(reply, "key '" + script::quorum_key(prefix_) + "'");
    const auto said = script::parse_record_reply(reply);
    if (!said) at.fail(errc::unexpected_reply, {});
    flow_.on_written(what.at, what.record, said->instead);
    if (said->instead) return;
  } catch (const error& e) {
    return flow_.on_away(what.at, e.detail().server_text.empty() ? e.code().message() : e.detail().server_text);
  }
  tell({what.record.is_open ? step::opened : step::closed, name_of(what.at), {}, {}});
}

void replacement::act(const flow::wait& what) {
  const auto began = boottime_now();
  const auto until = began + what.time;
  tell({step::waits, {}, {}, what.time});
  std::mutex mutex;
  std::condition_variable_any news;
  std::unique_lock held{mutex};
  while (boottime_now() < until && !how_.cancel.stop_requested()) {
    (void)news.wait_for(held, how_.cancel, until - boottime_now(), [] { return false; });
  }
  waited_ += std::chrono::duration_cast<milliseconds>(boottime_now() - began);
  if (how_.cancel.stop_requested())
    cancelled("its servers are closed, and the new list is not open: call again, and it goes on");
}

void replacement::act(const flow::tell_away& what) {
  tell({step::away, name_of(what.at), flow_.members()[what.at].trouble, {}});
}

void replacement::act(const flow::tell_goes_on&) { tell({step::goes_on, {}, {}, {}}); }

void replacement::act(const flow::failure& what) { throw error{what.code, what.why}; }

void replacement::act(const flow::done&) { is_done_ = true; }

quorum_replacement replacement::run() {
  while (!is_done_) {
    const auto next = flow_.next();
    std::visit([this](const auto& what) { act(what); }, next);
  }
  quorum_replacement done;
  done.uri = uri_;
  done.generation = flow_.generation();
  done.closed = flow_.closed();
  done.opened = flow_.opened();
  for (const auto& one : flow_.members()) {
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
