// SPDX-License-Identifier: Apache-2.0
#include "client/quorum_break.hpp"

#include "client/client_state.hpp"
#include "client/quorum.hpp"
#include "client/survey.hpp"
#include "core/break_count.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using core::break_count;

namespace {

// All of them, whatever one says: a vote that is left may be that which makes the lock.
class breaking {
public:
  breaking(client_state& state, const lock_name& name, const break_options& options)
      : state_{state},
        of_{*state.of_quorum()},
        name_{name},
        options_{options},
        is_known_(of_.size()),
        count_{of_.size()} {}

  // False: it says nothing new.
  bool take(const votes_seen& seen) {
    bool is_news = false;
    for (const auto& one : seen.votes) {
      if (is_known_[one.node]) continue;
      is_known_[one.node] = is_news = true;
      break_at(one);
    }
    for (const auto& one : seen.silent) {
      if (is_known_[one.node]) continue;
      is_known_[one.node] = is_news = true;
      ++silent_;
      count_.add_silent(1);
      add_reason(silent_whys_, one.why);
    }
    return is_news;
  }
  // Those that had nothing of it may be about to vote.
  bool may_be_growing() const { return count_.so_far() == break_count::end::broken && !count_.is_by_majority(); }
  // Throws unless it is broken.
  void conclude() const;

private:
  static void add_reason(std::string& to, const std::string& why) { to += (to.empty() ? "" : "; ") + why; }

  void break_at(const vote_to_break& one) {
    ++votes_;
    try {
      break_lock(*of_.client_of(one.node), name_.text(), one.token, options_);
      count_.add({});
    } catch (const error& e) {
      count_.add(e.code());
      // Of those that say why not, who has nothing of it says least.
      if (!first_ || break_count::is_gone(first_->code())) first_.emplace(e);
      ++missed_;
      add_reason(whys_, of_.name(one.node) + ": " + e.what());
    }
  }

  client_state& state_;
  quorum& of_;
  const lock_name& name_;
  const break_options& options_;
  std::vector<bool> is_known_;
  break_count count_;
  std::optional<error> first_{};
  std::size_t votes_ = 0;
  std::size_t missed_ = 0;
  std::size_t silent_ = 0;
  std::string whys_{};
  std::string silent_whys_{};
};

void breaking::conclude() const {
  switch (count_.so_far()) {
    case break_count::end::broken: return;
    case break_count::end::not_broken: throw error{*first_};
    case break_count::end::not_known: break;
  }
  auto why = whys_;
  if (!silent_whys_.empty()) add_reason(why, silent_whys_);
  error_detail detail;
  detail.subject = "'" + name_.text() + "'";
  detail.why = fmt::format("{} of {} servers that have it{} did not break it: {}; what is broken stays: break it again",
                           missed_ + silent_, votes_ + silent_, silent_ == 0 ? "" : ", or may,", why);
  state_.fail(errc::reply_lost, std::move(detail));
}

}  // namespace

// A minority's votes may be the first of a lock that is being granted, and those without them keep it. All are asked
// for at the same time, so when the last of them can have come those that had nothing are looked at again.
void break_votes(client_state& state, const lock_name& name, const votes_seen& first,
                 const std::function<votes_seen()>& look, const break_options& options) {
  constexpr std::chrono::milliseconds votes_come_within{600};  // Twice patience_of(), at most.
  breaking it{state, name, options};
  it.take(first);
  while (it.may_be_growing()) {
    std::this_thread::sleep_for(votes_come_within);
    if (!it.take(look())) break;
  }
  it.conclude();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
