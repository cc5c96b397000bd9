// SPDX-License-Identifier: Apache-2.0
#include "client/quorum_break.hpp"

#include "client/client_state.hpp"
#include "client/quorum.hpp"
#include "client/survey.hpp"
#include "core/break_count.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using core::break_count;

// All of them, whatever one says: a vote that is left may be that which makes the lock.
void break_votes(client_state& state, const lock_name& name, const std::vector<vote_to_break>& votes,
                 const std::vector<std::string>& silent, const break_options& options) {
  auto& of = *state.of_quorum();
  break_count count{of.size()};
  count.add_silent(silent.size());
  std::optional<error> first;
  std::size_t missed = 0;
  std::string why;
  for (const auto& one : votes) {
    try {
      break_lock(*of.client_of(one.node), name.text(), one.token, options);
      count.add({});
    } catch (const error& e) {
      count.add(e.code());
      // Of those that say why not, who has nothing of it says least.
      if (!first || break_count::is_gone(first->code())) first.emplace(e);
      ++missed;
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", of.name(one.node), e.what());
    }
  }
  switch (count.so_far()) {
    case break_count::end::broken: return;
    case break_count::end::not_broken: throw error{*first};
    case break_count::end::not_known: break;
  }
  for (const auto& one : silent) why += fmt::format("{}{}", why.empty() ? "" : "; ", one);
  error_detail detail;
  detail.subject = "'" + name.text() + "'";
  detail.why =
      fmt::format("{} of {} servers that have it{} did not break it: {}; what is broken stays: break it again",
                  missed + silent.size(), votes.size() + silent.size(), silent.empty() ? "" : ", or may,", why);
  state.fail(errc::reply_lost, std::move(detail));
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
