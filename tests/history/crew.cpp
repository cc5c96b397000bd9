// SPDX-License-Identifier: Apache-2.0
#include "history/crew.hpp"

#include "history/log.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <iterator>
#include <utility>

namespace holdfast::test::history {

crew::crew(redis_server& server, command how, const crew_options& options)
    : server_{server}, how_{std::move(how)}, options_{options}, proxy_{server.socket()}, random_{options.seed} {}

crew::member crew::start(bool is_direct) {
  const int worker = static_cast<int>(was_direct_.size());
  was_direct_.push_back(is_direct);
  const auto words = how_(is_direct ? server_.socket() : proxy_.socket(), log_of(worker),
                          options_.seed * 1000 + static_cast<unsigned>(worker), is_direct);
  return {child_process{words}, is_direct};
}

void crew::replace(member& dead) {
  dead.process.wait();
  dead = start(dead.is_direct);
}

std::chrono::milliseconds crew::some_stop() {
  return std::chrono::milliseconds{1 + pick(static_cast<int>(options_.longest_stop.count()))};
}

void crew::make_a_fault() {
  auto& one = members_[static_cast<std::size_t>(pick(static_cast<int>(members_.size())))];
  const int what = pick(10);
  if (what < 2) {
    ++faults_.kills;
    one.process.signal(SIGKILL);
    replace(one);
  } else if (what < 6 && options_.stops && one.resume_at == 0ns) {
    ++faults_.stops;
    one.process.signal(SIGSTOP);
    one.resume_at = boottime() + some_stop();
  } else if (what == 6 && options_.stops && server_resumes_at_ == 0ns) {
    ++faults_.server_stops;
    server_.pause();
    server_resumes_at_ = boottime() + some_stop() / 6;
  } else if (options_.through_faults > 0) {
    ++faults_.network;
    disturb_the_network();
  }
}

void crew::disturb_the_network() {
  const auto where = pick(2) == 0 ? direction::to_server : direction::to_client;
  proxy_.heal();
  switch (pick(4)) {
    case 0: proxy_.cut_all(); break;
    case 1: proxy_.set(where, {.delay = std::chrono::milliseconds{pick(100)}}); break;
    case 2: proxy_.set_existing(where, {.pass_only = static_cast<std::size_t>(pick(400))}); break;
    default:
      proxy_.set_existing(where, {.pass_only = static_cast<std::size_t>(pick(400)), .at_the_end = fault::then::rst});
  }
}

void crew::resume_the_stopped() {
  for (auto& one : members_) {
    if (one.resume_at == 0ns || boottime() < one.resume_at) continue;
    one.process.signal(SIGCONT);
    one.resume_at = 0ns;
  }
  if (server_resumes_at_ != 0ns && boottime() >= server_resumes_at_) {
    server_.resume();
    server_resumes_at_ = 0ns;
  }
}

void crew::end() {
  if (server_resumes_at_ != 0ns) server_.resume();
  proxy_.heal();
  for (auto& one : members_) {
    one.process.signal(SIGCONT);
    one.process.close_input();
  }
  for (auto& one : members_) {
    const auto status = one.process.wait(60s);
    EXPECT_TRUE(status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << "status " << status.value_or(-1);
  }
}

std::size_t crew::written() const {
  std::size_t bytes = 0;
  for (int worker = 0; worker < static_cast<int>(was_direct_.size()); ++worker) {
    struct stat about {};
    if (::stat(log_of(worker).c_str(), &about) == 0) bytes += static_cast<std::size_t>(about.st_size);
  }
  return bytes;
}

operations crew::run() {
  for (int i = 0; i < options_.direct + options_.through_faults; ++i) members_.push_back(start(i < options_.direct));
  eventually([&] { return written() > 0; }, 60s);
  const auto end_at = boottime() + options_.length;
  const auto give_up_at = end_at + 60s;
  while (boottime() < end_at || (written() < options_.enough && boottime() < give_up_at)) {
    let_pass(std::chrono::milliseconds{20 + pick(160)});
    resume_the_stopped();
    make_a_fault();
  }
  end();
  operations all;
  for (int worker = 0; worker < static_cast<int>(was_direct_.size()); ++worker) {
    auto its_own = read_log(log_of(worker), worker, !was_direct_[static_cast<std::size_t>(worker)]);
    all.insert(all.end(), std::make_move_iterator(its_own.begin()), std::make_move_iterator(its_own.end()));
  }
  return all;
}

}  // namespace holdfast::test::history
