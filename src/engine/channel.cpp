// SPDX-License-Identifier: Apache-2.0
#include "engine/channel.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::engine {

namespace {

// In its own words, a node of a cluster is not whom we should have asked, or not now.
bool is_redirection(std::string_view text) {
  return text.starts_with("MOVED ") || text.starts_with("CLUSTERDOWN");  // ASK: the map stays as it is.
}

}  // namespace

channel::channel(settings s, base::random_source& rng, channel_listener& listener)
    : settings_{std::move(s)}, rng_{&rng}, listener_{&listener}, epoch_{settings_.epoch} {
  if (settings_.durable.replicas > 0) confirmed_.what = confirmation::word::not_asked;
}

bool channel::wants_connection(time_point now) const {
  return state_ == state::closed && has_demand_ && now >= may_connect_at_;
}

void channel::set_demand(bool is_wanted, bool to_give_back) {
  // A pause was for those who would have been granted something.
  const bool may_be_served = to_give_back && !gives_back_ && last_failure_.code == errc::no_primary;
  if (may_be_served) may_connect_at_ = time_point{};
  has_demand_ = is_wanted;
  gives_back_ = to_give_back;
}

void channel::on_connecting(time_point now) {
  HOLDFAST_ASSERT(state_ == state::closed);
  state_ = state::connecting;
  only_takes_back_ = false;
  state_since_ = now;
  must_close_ = false;
  ++connect_attempts_;
}

void channel::on_nearer(time_point now) {
  HOLDFAST_ASSERT(state_ == state::connecting);
  state_since_ = now;
}

void channel::on_connected(time_point now, named_primary::term_number term) {
  HOLDFAST_ASSERT(state_ == state::connecting);
  term_ = term;
  if (last_failure_.code == errc::server_silent) last_failure_.text = "no answer";  // It is there, by now.
  state_since_ = heard_at_ = now;
  output_.clear();
  sent_ = 0;
  text_sent_.fill(0);
  reader_ = resp::reader{};
  epoch_.begin();
  greeting_.begin(output_,
                  {settings_.who, settings_.database, settings_.needs_scripts,
                   settings_.durable.replicas > 0 && !epoch_.may_be_unknown(), settings_.node_id},
                  &epoch_, now);
  state_ = state::greeting;  // Not before: without memory it has not begun.
}

void channel::on_bytes(time_point now, std::string_view bytes) {
  if (state_ != state::greeting && state_ != state::ready) return;
  was_asleep_ = now >= silence_ends();
  heard_at_ = now;
  reader_.feed(bytes);
  while (auto reply = reader_.next()) {
    if (state_ == state::greeting) {
      on_greeting_reply(now, *reply);
    } else if (state_ == state::ready) {
      on_request_reply(now, *reply);
    }
    if (must_close_) return;
  }
  if (reader_.failure().empty()) return;
  if (state_ != state::greeting) return fail(now, {errc::unexpected_reply, reader_.failure(), false, false});
  // The port of something else: it says the same the next time.
  const bool is_http = bytes.starts_with("HTTP/") || bytes.starts_with("<");
  fail(now, {errc::wrong_server, is_http ? "it speaks HTTP, not Redis" : reader_.failure(), true, false});
}

void channel::on_greeting_reply(time_point now, const resp::value& reply) {
  if (auto failure = greeting_.on_reply(now, reply, output_)) {
    // Who names it has not heard yet of a failover, or named it before the replica was told.
    if (settings_.primary && failure->code == errc::not_a_primary) failure->is_final = false;
    return fail(now, *failure);
  }
  if (!greeting_.is_done()) return;
  state_ = state::ready;
  note_round_trip(greeting_.heard_at() - state_since_);
  was_ever_ready_ = true;
  connect_attempts_ = 0;
  if (useless_in_a_row_++ == 0) reconnect_.reset();
  // TIME travelled in the middle of the first write: at the latest it was true when the last byte of its answers came.
  observe_clock(greeting_.now(), state_since_, greeting_.heard_at());
  listener_->on_ready(now);
}

script::classified channel::judge(std::string_view text) const {
  auto what = script::classify(text);
  const bool is_primary_no_more = settings_.primary && what.code == errc::not_a_primary;
  const bool may_be_elsewhere = is_in_cluster() && what.what == script::reaction::elsewhere;
  if (is_primary_no_more || may_be_elsewhere) what.code = errc::no_primary;
  return what;
}

void channel::on_request_reply(time_point now, const resp::value& reply) {
  if (settings_.hears_pushes && listener_->on_push(now, reply)) return;
  if (open_.empty()) return fail(now, {errc::unexpected_reply, "a reply to no request", false, false});
  auto& first = open_.front();
  useless_in_a_row_ = 0;
  reconnect_.reset();
  if (first.is == slot::sort::wait) {
    pop();
    return on_wait_reply(now, reply);
  }
  if (first.sent_at >= wait_ended_at_ && !was_asleep_) note_round_trip(now - first.sent_at);

  const auto* error = reply.as_error();
  if (error && settings_.redirected && is_redirection(error->text)) settings_.redirected();
  if (error && !first.from && first.what) ++refused_unheard_;
  const bool is_unknown_script = error && first.what && !first.is_text && error->text.starts_with("NOSCRIPT");
  if (is_unknown_script) send_again(first);  // Without memory it stands where it was, and is cut off with the others.
  if (is_unknown_script && !first.from) ++sent_again_unheard_;
  const slot answered = pop();
  if (is_unknown_script) return;
  let_line_go_on(now, answered, reply);
  if (!answered.from) return;
  if (answered.is == slot::sort::durable) {
    kept_.push_back({answered.from, answered.sent_at, now, reply, answered.number});
    ++answered.from->open_requests_;  // Not before: without memory it is nowhere.
    return;
  }
  answered.from->on_reply(now, answered.sent_at, reply);
}

// The server lost its script cache (H28). By text it works and is cached again; those behind it, whose refusals were
// under way already, go by digest again. The clock of the request goes on from its first sending, which can only make a
// lease shorter. Of those that were forgotten only a leave: a renewal would be sent again after the release (C6).
void channel::send_again(slot& refused) {
  auto& text_sent = text_sent_[static_cast<std::size_t>(refused.what->script)];
  const bool is_on_its_way = text_sent > refused.number;
  request({.from = refused.from,
           .sent_at = refused.sent_at,
           .what = std::move(refused.what),
           .is = refused.is,
           .is_text = !is_on_its_way,
           .times = refused.times},
          [&](const slot& again) {
            script::append(output_, *again.what, again.is_text ? script::call::by_text : script::call::by_digest);
          });
  if (!is_on_its_way) text_sent = sent_;
}

// At once, because nobody else may be there to do it before a heartbeat. Each time others are seen, and somebody who
// has it or will take it ends it; `most_times` are ten thousands. And behind what was given back when nobody knew of a
// quarantine, and there is none: the question went ahead of it (C7).
void channel::let_line_go_on(time_point now, const slot& answered, const resp::value& reply) {
  constexpr unsigned char most_times = 255;
  if (!answered.what || answered.times == most_times) return;
  const bool was_kept = script::has_kept_the_line(*answered.what) && !reply.as_error() && !epoch_.is_quarantine(now);
  if (!was_kept && !script::goes_on(*answered.what, reply)) return;
  try {
    if (auto next = script::go_on(*answered.what)) {
      send_unasked(now, *std::move(next), static_cast<unsigned char>(answered.times + 1));
    }
  } catch (const std::bad_alloc&) {
    return;  // Then a heartbeat of those who stand in it does it; whoever asked has its answer all the same.
  }
}

// ---- replicas ----

channel::slot::sort channel::sort_of(const script::command& what, hope what_for) const {
  const bool is_durable = settings_.durable.replicas > 0 && what_for == hope::grant && wants_wait(what);
  return is_durable ? slot::sort::durable : slot::sort::plain;
}

// Behind all that is to be written: whatever of it wants to be confirmed is confirmed by this one.
void channel::pay_wait() {
  // (Nothing is open if the server answered what it was not asked.)
  request({.sent_at = open_.empty() ? heard_at_ : open_.back().sent_at, .is = slot::sort::wait},
          [&](const slot&) { append_wait(output_, settings_.durable.replicas, settings_.durable.timeout); });
  owes_wait_ = false;
}

void channel::on_wait_reply(time_point now, const resp::value& reply) {
  wait_ended_at_ = now;
  connection_failure failure;
  auto said = parse_wait(reply, settings_.durable.replicas, failure);
  if (!said) return fail(now, failure);
  confirmed_ = std::move(*said);
  // One by one: who hears of it may forget others, or end the connection.
  while (!kept_.empty()) {
    kept first;
    reply_sink* const from = pop_kept(first);
    if (!from) continue;
    came_at_ = first.came_at;
    from->on_reply(now, first.sent_at, first.reply);
  }
  came_at_ = never;
  confirmed_ = {};
  confirmed_.what = confirmation::word::not_asked;
}

reply_sink* channel::pop_kept(kept& into) {
  into = std::move(kept_.front());
  kept_.pop_front();
  if (into.from) --into.from->open_requests_;
  return into.from;
}

void channel::on_closed(time_point now, connection_failure failure) {
  if (state_ == state::closed) return;
  const bool was_ready = state_ == state::ready;
  state_ = state::closed;
  last_failure_ = std::move(failure);
  if (settings_.redirected) settings_.redirected();
  output_.clear();
  owes_wait_ = false;
  // Where there was no memory for what WAIT had confirmed, it is in the middle of that.
  came_at_ = never;
  if (confirmed_.what != confirmation::word::not_needed) {
    confirmed_ = {};
    confirmed_.what = confirmation::word::not_asked;
  }
  // A ready connection that ends is made again at once; one that could not be made, after a pause, and so is the second
  // in a row that greeted well and then answered nothing.
  const bool is_worth_it = was_ready && useless_in_a_row_ < 2;
  may_connect_at_ = is_worth_it ? now : now + reconnect_.next(*rng_);
  // One by one: who hears of a cut may end, and forgets its other requests.
  while (!kept_.empty()) {
    kept first;
    if (reply_sink* const from = pop_kept(first)) from->on_cut(now);
  }
  while (!open_.empty()) {
    const slot cut = pop();
    if (!cut.from) continue;
    cut.is_refused ? cut.from->on_reply(now, cut.sent_at, *refusal_) : cut.from->on_cut(now);
  }
  listener_->on_down(now, last_failure_, was_ready);
}

void channel::fail(time_point now, const connection_failure& failure) {
  must_close_ = true;
  on_closed(now, failure);
}

bool channel::mind_primary(time_point now, named_primary::term_number term) {
  if (!settings_.primary || state_ == state::closed || term == 0) return false;
  const bool is_other = settings_.primary->term() != term;
  if (!is_other && (state_ == state::connecting || is_of_use(now, term))) return false;
  fail(now,
       {errc::no_primary, is_other ? "another primary is named now" : "no majority has named this primary for too long",
        false, false});
  return true;
}

// Also where it is named again, one that was there for those who give back ends with them: the others are told of the
// next one.
bool channel::is_of_use(time_point now, named_primary::term_number term) {
  const auto& named = *settings_.primary;
  if (settings_.epoch.may_be_unknown) return named.is_fresh(term, now);
  if (!only_takes_back_ && named.may_grant(term, now)) return true;
  only_takes_back_ = gives_back_ && named.is_fresh(term, now);
  return only_takes_back_;
}

bool channel::on_wake(time_point now) {
  if (now < silence_ends()) return false;
  connection_failure failure{errc::server_silent, {}, false, false};
  failure.text = state_ == state::connecting ? "no connection" : "no answer";
  fail(now, failure);
  return true;
}

time_point channel::wake_at() const {
  if (state_ == state::closed) return has_demand_ ? may_connect_at_ : never;
  return silence_ends();
}

time_point channel::silence_ends() const {
  switch (state_) {
    case state::closed: return never;
    case state::connecting:
    case state::greeting: return state_since_ + settings_.connect_timeout;
    case state::ready: break;
  }
  if (open_.empty()) return never;
  const auto& next = open_.front();
  const duration allowed = next.is == slot::sort::wait ? duration{settings_.durable.timeout} : duration{0};
  const duration most = std::max(most_silence_, round_trip_p99_ * 3 / 2);  // It may be far away.
  const duration measured = std::min(3 * round_trip_p99_, most);
  return std::max(heard_at_, next.sent_at) + std::max(settings_.least_silence, measured) + allowed;
}

// Each 32nd round trip, so that it costs nothing: the second largest of the last 128 stands for the 99th percentile.
void channel::note_round_trip(duration round_trip) {
  constexpr std::size_t few = 32;
  round_trips_[round_trips_seen_++ % round_trips_.size()] = round_trip;
  // Of so few the last one says most; but a server that was slow once is not waited for much longer because of it.
  if (round_trips_seen_ < few) round_trip_p99_ = std::min(round_trip, settings_.connect_timeout / 3);
  if (round_trips_seen_ % few != 0) return;
  const auto seen = static_cast<std::ptrdiff_t>(std::min(round_trips_seen_, round_trips_.size()));
  auto sorted = round_trips_;
  std::nth_element(sorted.begin(), sorted.begin() + seen - 2, sorted.begin() + seen);
  round_trip_p99_ = sorted[static_cast<std::size_t>(seen - 2)];
}

void channel::observe_clock(server_time server_now, time_point sent_at, time_point now) {
  // What was kept came before it is given out.
  if (const auto step = clock_.observe(server_now, sent_at, std::min(now, came_at_)))
    listener_->on_clock_step(now, *step);
}

void channel::send(time_point now, script::command what, reply_sink& from, hope what_for) {
  HOLDFAST_ASSERT(takes_back());
  mind_quarantine(now, what, what_for);
  const auto sort = sort_of(what, what_for);
  request({.from = &from, .sent_at = now, .what = std::move(what), .is = sort},
          [&](const slot& made) { script::append(output_, *made.what, script::call::by_digest); });
}

void channel::send_and_forget(time_point now, script::command what) { send_unasked(now, std::move(what), 0); }

void channel::send_unasked(time_point now, script::command what, unsigned char times) {
  HOLDFAST_ASSERT(takes_back());
  mind_quarantine(now, what, hope::grant);
  request({.sent_at = now, .what = std::move(what), .times = times},
          [&](const slot& made) { script::append(output_, *made.what, script::call::by_digest); });
}

void channel::mind_quarantine(time_point now, script::command& what, hope what_for) {
  const bool is_due = what_for == hope::grant ? epoch_.must_ask(now) : epoch_.must_ask_again();
  // A replica, which it may be by now, would answer what only reads, too (H37).
  const bool depends_on_it = script::may_grant(what) || script::only_reads(what);
  if ((is_due && depends_on_it) || epoch_.must_ask_at_last(now) || epoch_.must_say_more()) ask_epoch(now);
  if (epoch_.is_quarantine(now)) script::keep_quarantine(what);
}

void channel::ask_epoch(time_point now) {
  request({.from = &epoch_answers_, .sent_at = now}, [&](const slot&) { epoch_.ask(output_, now); });
}

void channel::ask_epoch_if_due(time_point now) {
  HOLDFAST_ASSERT(is_ready());
  if (epoch_.must_ask(now)) ask_epoch(now);
}

void channel::on_epoch(time_point now, time_point sent_at, const resp::value& reply) {
  if (const auto there = script::server_time_in(reply)) observe_clock(*there, sent_at, now);
  if (epoch_.on_answer(now, sent_at, reply)) return;
  // What passes is asked again with the next request; nothing counts until then.
  const auto* error = reply.as_error();
  if (error && script::classify(error->text).what == script::reaction::try_again) return;
  if (epoch_.may_be_unknown()) return;  // What is held is renewed, whatever the server says of that.
  const auto why = no_epoch(reply, run_id(), is_in_cluster());
  if (why.code == errc::not_a_primary && !settings_.primary && !is_in_cluster()) find_refused(reply);
  fail(now, why);
}

void channel::hang_up(time_point now, const connection_failure& failure) {
  if (state_ == state::closed) return;  // Somebody who was told of that.
  if (failure.code == errc::not_a_primary) find_refused(resp::server_error{failure.text});
  fail(now, failure);
}

// What was asked behind that did nothing, if its answer has come along and is that it did not: a definite no (C5), for
// the same reason. Nothing else that a replica says counts. They are told when the connection has ended, because the
// first of them ends it for the others.
void channel::find_refused(resp::value why) {
  refusal_ = std::move(why);
  for (slot& next : open_) {
    const auto reply = reader_.next();
    if (!reply) return;
    const auto* error = reply->as_error();
    const bool is_unknown_script = error && error->text.starts_with("NOSCRIPT");
    const bool is_no = is_unknown_script || (error && script::classify(error->text).code == errc::not_a_primary);
    next.is_refused = is_no && next.is != slot::sort::wait && next.from != &epoch_answers_;
    if (is_no && !next.from && next.what) ++refused_unheard_;
  }
}

void channel::send_raw(time_point now, std::string_view encoded, reply_sink& from) {
  HOLDFAST_ASSERT(is_ready());
  request({.from = &from, .sent_at = now}, [&](const slot&) { output_.append(encoded); });
}

void channel::load(time_point now, script::id what) {
  HOLDFAST_ASSERT(is_ready());
  auto& text_sent = text_sent_[static_cast<std::size_t>(what)];
  if (text_sent != 0 || greeting_.has_script(what)) return;
  const auto& source = script::find(what);
  request({.sent_at = now}, [&](const slot&) {
    resp::append_request(output_, std::array<std::string_view, 3>{"SCRIPT", "LOAD", source.text});
  });
  text_sent = sent_;
}

channel::slot channel::pop() {
  slot first = std::move(open_.front());
  open_.pop_front();
  if (first.times > 0) --going_on_;
  if (first.from) --first.from->open_requests_;
  return first;
}

// Of ten thousand calls that end, few have anything open: the others cost nothing here. A call that has is found by its
// number, because a hundred thousand leases may be let go at once.
void channel::forget(reply_sink& who) {
  if (who.open_requests_ == 0) return;
  if (!open_.empty() && who.last_request_ >= open_.front().number) {
    auto s = open_.begin() + static_cast<std::ptrdiff_t>(who.last_request_ - open_.front().number);
    for (;; --s) {
      if (s->from == &who) {
        s->from = nullptr;
        // To give up what was asked for is right whoever still waits for it, and may be all that ends it (C5).
        const bool is_leave =
            s->what && (s->what->script == script::id::leave || s->what->script == script::id::leave_counted);
        if (!is_leave) s->what.reset();
        if (--who.open_requests_ == 0) return;
      }
      if (s == open_.begin()) break;
    }
  }
  // The others are answered and kept.
  const auto is_before = [](const kept& one, std::uint64_t number) { return one.number <= number; };
  auto k = std::lower_bound(kept_.begin(), kept_.end(), who.last_request_, is_before);
  while (who.open_requests_ > 0) {
    HOLDFAST_ASSERT(k != kept_.begin());
    --k;
    if (k->from != &who) continue;
    k->from = nullptr;
    --who.open_requests_;
  }
}

}  // namespace holdfast::engine
