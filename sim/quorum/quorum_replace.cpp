// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_replace.hpp"

#include "resp/info.hpp"
#include "script/command.hpp"
#include "script/keys.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view prefix = "hf:";

std::vector<std::string> names_of(const server_list& list) {
  std::vector<std::string> all;
  for (const auto node : list.nodes) all.push_back(name_of_server(node));
  return all;
}

engine::list_replacement::lists lists_of(const quorum_replace::settings& what) {
  const auto hold = what.max_ttl + what.max_ttl / 100 + 3ms;  // As hold_of() of src/client/settings.cpp.
  return {what.from.record,           what.to.record, "the old list", "the new list",
          script::quorum_key(prefix), hold,           what.reopen};
}

}  // namespace

quorum_replace::quorum_replace(event_queue& events, std::deque<model_server>& servers, settings what, seeded_random rng,
                               hooks tell)
    : events_{&events},
      servers_{&servers},
      what_{std::move(what)},
      rng_{rng},
      tell_{std::move(tell)},
      flow_{lists_of(what_), names_of(what_.from), names_of(what_.to)} {
  for (std::size_t i = 0; i < flow_.members().size(); ++i)
    is_cut_off_.push_back(rng_.chance(what_.unreachable_percent));
}

void quorum_replace::go_on() {
  if (is_over_) return;
  const auto next = flow_.next();
  std::visit([this](const auto& what) { act(what); }, next);
}

void quorum_replace::end(errc how, const std::string& why) {
  is_over_ = true;
  tell_.on_end(how, why);
}

void quorum_replace::later(duration wait, std::function<void()> what) {
  events_->after(wait, [this, what = std::move(what)] {
    if (!is_over_) what();
  });
}

duration quorum_replace::way() {
  return rng_.chance(90) ? rng_.any_size(50us, 50ms) : rng_.any_size(1ms, std::max<duration>(2ms, what_.slowest));
}

std::size_t quorum_replace::node_of(std::size_t at) const {
  const auto& name = flow_.members()[at].name;
  for (const auto* list : {&what_.from, &what_.to}) {
    for (const auto node : list->nodes) {
      if (name_of_server(node) == name) return node;
    }
  }
  return 0;  // There is none.
}

bool quorum_replace::answers(std::size_t at) const {
  auto& server = (*servers_)[node_of(at)];
  return !is_cut_off_[at] && server.is_up() && server.stuck_until() <= events_->now();
}

resp::value quorum_replace::operate(std::size_t at, std::initializer_list<std::string> words) {
  const auto node = node_of(at);
  auto reply = (*servers_)[node].operate(words);
  tell_.on_answer(node, *words.begin(), reply);
  return reply;
}

// ---- what is done ----

void quorum_replace::look(std::size_t at) {
  if (!answers(at)) return flow_.on_away(at, "it does not answer");
  const auto text_of = [](const resp::value& reply) { return reply.as_bulk() ? *reply.as_bulk() : std::string{}; };
  const auto info = operate(at, {"INFO", "server"});
  flow_.on_seen(at,
                {text_of(operate(at, {"GET", script::quorum_key(prefix)})), resp::info_field(text_of(info), "run_id"),
                 text_of(operate(at, {"GET", script::epoch_key(prefix, {})}))});
}

void quorum_replace::act(const flow::look_at_all&) {
  looks_ = flow_.members().size();
  for (std::size_t i = 0; i < flow_.members().size(); ++i) {
    later(way(), [this, i] {
      look(i);
      if (--looks_ == 0) go_on();
    });
  }
}

void quorum_replace::act(const flow::look& what) {
  later(way(), [this, at = what.at] {
    look(at);
    go_on();
  });
}

std::optional<script::record_reply> quorum_replace::ask(const flow::write& what) {
  const auto asked = script::write_record(prefix, what.record, what.before);
  const auto reply = operate(what.at, {"EVAL", std::string{script::find(asked.script).text}, "1", asked.keys[0],
                                       asked.args[0], asked.args[1]});
  auto said = script::parse_record_reply(reply);
  if (said && !said->instead) tell_.on_written(node_of(what.at), what.record);
  return said;
}

// Who got no answer asks again, and leaves the server out in the end; what he asked for may still be done.
void quorum_replace::act(const flow::write& what) {
  later(way(), [this, what] {
    if (!answers(what.at) || rng_.chance(2)) {
      auto& server = (*servers_)[node_of(what.at)];
      if (!is_cut_off_[what.at] && server.is_up() && rng_.chance(50)) {
        events_->at(std::max(events_->now(), server.stuck_until()), [this, what, &server] {
          if (server.is_up()) ask(what);
        });
      }
      flow_.on_away(what.at, "it does not answer");
    } else if (const auto said = ask(what)) {
      flow_.on_written(what.at, what.record, said->instead);
    } else {
      flow_.on_away(what.at, "an error");
    }
    go_on();
  });
}

void quorum_replace::act(const flow::wait& what) {
  tell_.on_wait(what.time);
  if (what_.planted == canary_switch::opens_without_waiting) return later(way(), [this] { go_on(); });
  const local_clock own{time_point{1h}, what_.clock_ppm};
  events_->at(own.when(own.read(events_->now()) + what.time), [this] { go_on(); });
}

}  // namespace holdfast::sim
