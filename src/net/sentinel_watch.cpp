// SPDX-License-Identifier: Apache-2.0
#include "net/sentinel_watch.hpp"

#include "engine/sentinel_talk.hpp"
#include "net/clock.hpp"
#include "net/link.hpp"
#include "net/quiet_thread.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::net {

using namespace std::chrono_literals;

namespace {

// How long a round waits, and a sentinel has for an answer.
constexpr duration patience = 1s;
// For a name, a connection, TLS: more round trips than one.
constexpr duration patience_for_connection = 5s;
// Between two rounds for those who want to connect.
constexpr duration least_pause = 20ms;

}  // namespace

// The connection to one of them. It stays open from one question to the next.
class sentinel_watch::line {
public:
  line(const tcp_address& where, const sentinel_set& of)
      : name_{text_of(where)}, link_{endpoint{where, of.uses_tls, of.tls}}, talk_{of.who, of.primary} {}

  // A question or a connection that is still on its way is left so: from afar either takes longer than a round.
  void ask() {
    const time_point now = boottime_now();
    if (link_.is_open()) collect(POLLIN);  // It may have answered late, or have gone away.
    answer_.reset();
    if (talk_.is_asked() && now - asked_at_ >= patience) close();
    if (is_opening() && now - opened_at_ >= patience_for_connection) close();
    if (talk_.is_asked() || is_opening()) return;
    if (link_.is_open()) return put_question();
    opened_at_ = now;
    note(link_.open());
  }

  void collect(short happened) {
    if (happened == 0 || link_.is_closed()) return;
    if (!link_.is_open()) return note(link_.advance());
    if (happened & POLLOUT) flush();
    if (!(happened & ~POLLOUT) || !link_.is_open()) return;
    std::string bytes;
    const bool is_alive = link_.read(bytes);
    if (auto answer = talk_.on_bytes(bytes)) {
      const bool is_well = answer->failure.empty() || answer->is_unknown;
      answer_ = std::move(answer);
      if (!is_well) close();
    }
    if (!is_alive) end(link_.failure().text);
  }

  pollfd poll_for() const { return link_.poll_for(!outgoing_.empty()); }
  bool is_done() const { return answer_.has_value(); }

  std::optional<std::string> named() const {
    if (!answer_ || answer_->host.empty()) return std::nullopt;
    return text_of(where());
  }
  tcp_address where() const { return {answer_->host, answer_->port}; }
  time_point asked_at() const { return asked_at_; }
  bool is_unknown() const { return answer_ && answer_->is_unknown; }
  std::string trouble() const {
    if (!answer_) return name_ + ": no answer";
    return name_ + ": " + (answer_->failure.empty() ? text_of(where()) : answer_->failure);
  }

private:
  bool is_opening() const { return !link_.is_open() && !link_.is_closed(); }

  void note(link::progress progress) {
    if (progress == link::progress::failed) return end(link_.failure().text);
    if (progress != link::progress::open) return;
    talk_.begin();
    put_question();
  }

  void put_question() {
    asked_at_ = boottime_now();
    talk_.ask(outgoing_);
    flush();
  }

  void flush() {
    if (outgoing_.empty()) return;
    if (link_.write(outgoing_) == link::written::failed) end("the connection broke");
  }

  void close() {
    link_.close();
    talk_.begin();
    outgoing_.clear();
  }

  void end(std::string why) {
    close();
    if (answer_) return;
    answer_ = engine::sentinel_answer{};
    answer_->failure = std::move(why);
  }

  const std::string name_;
  link link_;
  engine::sentinel_talk talk_;
  std::string outgoing_{};
  time_point opened_at_{};
  time_point asked_at_{};
  std::optional<engine::sentinel_answer> answer_{};  // Of this round.
};

sentinel_watch::sentinel_watch(const sentinel_set& whom, duration worth)
    : named_{std::make_shared<engine::named_primary>(worth)}, period_{std::clamp<duration>(worth / 12, 100ms, 5s)} {
  for (const auto& one : whom.sentinels) lines_.push_back(std::make_unique<line>(one, whom));
}

sentinel_watch::~sentinel_watch() = default;

void sentinel_watch::find(const std::function<void(const found&)>& whom) {
  std::optional<found> known;
  {
    const std::lock_guard held{mutex_};
    if (is_closing_) {
      known = found{.failure = "the client is closed"};
    } else {
      if (!thread_.joinable()) thread_ = start_quietly([self = shared_from_this()] { self->run(); });
      if (last_.term != 0 && boottime_now() - last_at_ < 2 * period_) known = last_;
      if (!known) waiting_.push_back(whom);
      is_wanted_ = true;
    }
  }
  wake_.set();
  if (known) whom(*known);
}

void sentinel_watch::close(bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    is_closing_ = true;
    ending = std::move(thread_);
  }
  wake_.set();
  if (!ending.joinable()) return;
  if (wait) {
    ending.join();
  } else {
    ending.detach();
  }
}

bool sentinel_watch::must_end() const {
  const std::lock_guard held{mutex_};
  return is_closing_;
}

time_point sentinel_watch::next_round(time_point last) const {
  const std::lock_guard held{mutex_};
  return last + (is_wanted_ ? least_pause : period_);
}

void sentinel_watch::run() {
  while (!must_end()) {
    const time_point began_at = boottime_now();
    std::vector<std::function<void(const found&)>> whom;
    {
      const std::lock_guard held{mutex_};
      whom.swap(waiting_);
      is_wanted_ = false;
    }
    auto result = ask_all();
    // Without a majority nobody is named anew, but who was named not long ago is the primary still.
    if (result.term == 0 && named_->is_fresh(last_.term, boottime_now())) result = last_;
    for (const auto& tell : whom) tell(result);
    while (!must_end() && boottime_now() < next_round(began_at)) wait(next_round(began_at));
  }
}

sentinel_watch::found sentinel_watch::ask_all() {
  const time_point until = boottime_now() + patience;
  for (const auto& one : lines_) one->ask();
  for (;;) {
    auto result = what_they_say();
    if (result.term != 0 || all_are_done() || must_end() || boottime_now() >= until) return result;
    wait(until);
  }
}

bool sentinel_watch::all_are_done() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& one) { return one->is_done(); });
}

sentinel_watch::found sentinel_watch::what_they_say() {
  std::vector<std::optional<std::string>> named;
  for (const auto& one : lines_) named.push_back(one->named());
  found result;
  if (const auto primary = engine::named_by_majority(named)) {
    time_point asked_at = never;  // The first of those who name it.
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (named[i] != primary) continue;
      result.where = lines_[i]->where();
      asked_at = std::min(asked_at, lines_[i]->asked_at());
    }
    const bool is_first = named_->term() == 0;
    const bool is_other = named_->name(*primary, asked_at);
    result.term = named_->term();
    {
      const std::lock_guard held{mutex_};
      last_ = result;
      last_at_ = asked_at;
    }
    if (is_other && !is_first && tell_of_change_) tell_of_change_();
    return result;
  }
  const auto unknown = std::count_if(lines_.begin(), lines_.end(), [](const auto& one) { return one->is_unknown(); });
  result.is_final = static_cast<std::size_t>(unknown) * 2 > lines_.size();
  for (const auto& one : lines_) result.failure += (result.failure.empty() ? "" : "; ") + one->trouble();
  return result;
}

void sentinel_watch::wait(time_point until) {
  std::vector<pollfd> fds;
  for (const auto& one : lines_) fds.push_back(one->poll_for());
  fds.push_back({wake_.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boottime_now()).count();
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000))) <= 0) return;
  if (fds.back().revents) wake_.clear();
  for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i]->collect(fds[i].revents);
}

}  // namespace holdfast::net
