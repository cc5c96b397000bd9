// SPDX-License-Identifier: Apache-2.0
// What a program and the world may do to the engine, in any order: calls that begin, are cancelled and wait, leases
// that are released, dropped and joined, a server that answers well, wrongly or with nonsense, connections that come,
// end and fall silent, time that passes, clocks that step. Each byte of the input is a choice. ledger.hpp and
// engine_session.hpp say what must hold.
#include "engine_session.hpp"
#include "input.hpp"

#include "script/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using fuzz::wire;

std::string bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }

// {code, now, fields}
std::string coded(int code, const std::string& now, std::initializer_list<std::string> fields = {}) {
  std::string all = fmt::format("*{}\r\n:{}\r\n{}", 2 + fields.size(), code, now);
  for (const auto& f : fields) all += f;
  return all;
}

std::string stamp(server_time at) { return bulk(fmt::format("{:016}", at.time_since_epoch().count())); }

const std::string& holder() {
  static const std::string value = bulk("v1|" + std::string(32, 'b') + "|1795212800000041|10000|1795212800000041|bob");
  return value;
}

std::string queued(const std::string& now, fuzz::input& choose, std::size_t others) {
  constexpr std::array looks{5000, 0, 1, 52, 5000, 700};
  const auto look = fmt::format(":{}\r\n", choose.one_of(looks));
  if (others == 0) return coded(7, now, {now, ":1\r\n", look, holder(), ":5000\r\n"});
  return coded(7, now, {now, ":1\r\n", look, holder(), ":5000\r\n", choose.below(2) ? "*1\r\n:1\r\n" : "*0\r\n"});
}

// What our scripts would say to it, if all is well; and in the second place what they say if it is not.
std::string answer_to(const fuzz::sent_request& asked, const std::string& now, fuzz::input& choose, bool is_well) {
  if (!asked.what) return "+OK\r\n";
  switch (*asked.what) {
    case script::id::acquire:
      if (is_well) return now;
      return choose.below(2) ? coded(14, now) : coded(2, now, {holder(), ":5000\r\n"});
    case script::id::wait:
    case script::id::wait_counted: return is_well ? queued(now, choose, 0) : coded(0, now, {now});
    case script::id::look:
    case script::id::look_counted:
      return is_well ? coded(1, now, {now, ":10000\r\n"}) : queued(now, choose, asked.others);
    case script::id::renew:
    case script::id::renew_counted: return is_well ? now : coded(5, now, {bulk(choose.below(2) ? "gone" : "taken")});
    default: return is_well ? now : coded(5, now);
  }
}

// Any reply that any script gives, also to who did not ask for it.
std::string any_answer(const std::string& now, fuzz::input& choose) {
  const auto ms = fmt::format(":{}\r\n", 1U << choose.below(17));
  switch (choose.below(18)) {
    case 0: return now;
    case 1: return coded(0, now, {now});
    case 2: return coded(1, now, {now, ms});
    case 3: return coded(2, now, {holder(), ms});
    case 4: return coded(3, now);
    case 5: return coded(4, now);
    case 6: return coded(5, now);
    case 7: return coded(5, now, {bulk("gone")});
    case 8: return coded(5, now, {bulk("taken")});
    case 9: return coded(6, now);
    case 10: return queued(now, choose, 0);
    case 11: return queued(now, choose, 1);
    case 12: return coded(8, now, {ms});
    case 13: return coded(9, now, {bulk("list")});
    case 14: return coded(10, now, {bulk("ttl")});
    case 15: return coded(14, now);
    case 16: return coded(15, now);
    default: return coded(16, now, {":3\r\n"});
  }
}

constexpr std::array<std::string_view, 14> errors{"-NOSCRIPT No matching script.\r\n",
                                                  "-LOADING Redis is loading\r\n",
                                                  "-READONLY You can't write\r\n",
                                                  "-NOPERM this user has no permissions\r\n",
                                                  "-OOM command not allowed\r\n",
                                                  "-BUSY Redis is busy\r\n",
                                                  "-MOVED 3999 127.0.0.1:6381\r\n",
                                                  "-MISCONF Errors writing\r\n",
                                                  "-NOAUTH Authentication required.\r\n",
                                                  "-NOREPLICAS Not enough good replicas\r\n",
                                                  "-ERR max number of clients reached\r\n",
                                                  "-ERR unknown\r\n",
                                                  "$-1\r\n",
                                                  "*0\r\n"};

constexpr std::array<duration, 16> times{0ms, 1ms, 5ms,    24ms, 60ms, 101ms, 210ms, 499ms,
                                         1s,  2s,  3333ms, 5s,   7s,   11s,   33s,   70s};

fuzz::wish wish_of(fuzz::input& choose) {
  constexpr std::array<std::chrono::milliseconds, 4> ttls{10s, 100ms, 1s, 60s};
  constexpr std::array<duration, 4> waits{7s, 1ms, 600ms, 60s};
  fuzz::wish what{{"hf:{x}"}, {}, choose.one_of(ttls), false, {}};
  switch (choose.below(6)) {
    case 0: break;
    case 1: what.keys.holder = "hf:{y}"; break;
    case 2: what.part.permits = 16; break;
    case 3: what = {{"hf:{s}", {}, true}, {'p', 2, 3}, what.ttl, false, {}}; break;
    case 4: what = {{"hf:{w}", {}, true}, {'r', 1, 1'000'000}, what.ttl, false, {}}; break;
    default: what = {{"hf:{w}", {}, true}, {'w', 1'000'000, 1'000'000}, what.ttl, false, {}}; break;
  }
  switch (choose.below(3)) {
    case 0: what.is_try = true; break;
    case 1: break;
    default: what.wait = choose.one_of(waits);
  }
  return what;
}

void answer_all(fuzz::session& on, fuzz::input& choose, wire which, bool is_well) {
  std::string all;
  const auto now = stamp(on.server_now());
  const auto& open = on.open(which);
  const auto count = std::min(open.size(), 1 + choose.below(4));
  for (std::size_t i = 0; i < count; ++i) all += answer_to(open[i], now, choose, is_well);
  if (!all.empty()) on.say_at_once(which, all);
}

void message(fuzz::session& on, fuzz::input& choose) {
  const auto now = on.server_now().time_since_epoch().count();
  constexpr std::array<std::int64_t, 4> ahead{0, 200'000, 1'000'000, -1'000'000};
  const auto what = choose.below(2) ? "look" : "grant";
  const auto text = fmt::format("v1|{}|{:0>32}|{:016}|{:016}", what, on.last_owner(), now, now + choose.one_of(ahead));
  on.say(2, "*3\r\n" + bulk("message") + bulk("hf:wake:me") + bulk(text), 1000);
}

void call(fuzz::session& on, fuzz::input& choose) {
  constexpr std::size_t most_calls = 12;
  switch (choose.below(8)) {
    case 0: on.ask(); break;
    case 1:
      if (on.calls() > 0) on.cancel(choose.below(on.calls()));
      break;
    case 2:
      if (on.leases() > 0) on.release(choose.below(on.leases()));
      break;
    case 3:
      if (on.leases() > 0) on.drop(choose.below(on.leases()));
      break;
    case 4:
      if (on.leases() > 1) on.join(choose.below(on.leases()));
      break;
    default:
      if (on.calls() < most_calls) on.acquire(wish_of(choose));
  }
}

void trouble(fuzz::session& on, fuzz::input& choose) {
  constexpr std::array modes{fuzz::network::works, fuzz::network::refuses, fuzz::network::hangs,
                             fuzz::network::is_mute};
  constexpr std::array<std::chrono::microseconds, 4> steps{10s, -10s, 3600s, -500ms};
  switch (choose.below(6)) {
    case 0: on.cut(choose.below(3)); break;
    case 1: {
      const auto which = choose.below(3);
      on.set_network(which, choose.one_of(modes));
      break;
    }
    case 2: on.step_server_clock(choose.one_of(steps)); break;
    case 3: on.set_run(choose.below(2) ? "another" : "a run"); break;
    case 4: {
      const auto which = choose.below(3);
      const auto piece = 1 + choose.below(8);
      on.say(which, choose.one_of(errors), piece);
      break;
    }
    default: {
      const auto which = choose.below(3);
      const auto piece = 1 + choose.below(8);
      const auto length = choose.below(48);
      on.say(which, choose.text(length), piece);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input choose{data, size};
  const auto manner = choose.byte();
  fuzz::session on{manner / 3 % 8 == 7};
  while (!choose.is_over()) {
    const auto now = stamp(on.server_now());
    switch (choose.below(12)) {
      case 0:
      case 1: call(on, choose); break;
      case 2: answer_all(on, choose, wire::commands, true); break;
      case 3: answer_all(on, choose, wire::commands, false); break;
      case 4: answer_all(on, choose, wire::keeping, true); break;
      case 5: answer_all(on, choose, wire::keeping, false); break;
      case 6: {
        const auto which = choose.below(2);
        const auto piece = 1 + choose.below(64);
        on.say(which, any_answer(now, choose), piece);
        break;
      }
      case 7: on.pass(choose.one_of(times)); break;
      case 8: on.pass_to_next_wake(); break;
      case 9: trouble(on, choose); break;
      case 10: message(on, choose); break;
      default: on.say(2, "*3\r\n$9\r\nsubscribe\r\n$10\r\nhf:wake:me\r\n:1\r\n", 100);
    }
  }
  constexpr std::array ends{fuzz::network::refuses, fuzz::network::hangs, fuzz::network::is_mute};
  on.end(ends[manner % 3]);
  return 0;
}
