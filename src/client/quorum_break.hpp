// SPDX-License-Identifier: Apache-2.0
// A break of one lock on each of several servers that have a vote of its holder, and what it has come to all in all.
#pragma once

#include <holdfast/error.hpp>
#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <cstddef>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class client_state;

//  broken on         | else                            | is
//  ------------------+---------------------------------+------------------------------------------------------
//  a majority        | whatever                        | broken: without them the holder has no lock
//  some              | they have nothing of it         | broken: nobody has anything of it
//  some              | one could not, or nobody knows  | not known: what is left may be a lock, and may be none
//  none              | nobody knows of one             | not known
//  none              | they said why not               | not broken
class break_count {
public:
  enum class end { broken, not_known, not_broken };

  // `servers`: all of the quorum.
  explicit break_count(std::size_t servers) : servers_{servers} {}
  void add(std::error_code how) {
    if (!how) {
      ++broken_;
    } else if (!is_gone(how)) {
      ++failed_;
      is_open_ = is_open_ || how == outcome::unknown;
    }
  }
  end so_far() const {
    if (broken_ > servers_ / 2 || (broken_ > 0 && failed_ == 0)) return end::broken;
    return broken_ > 0 || is_open_ ? end::not_known : end::not_broken;
  }
  // The server has nothing of it any more, or something else.
  static bool is_gone(std::error_code how) { return how == errc::not_held || how == errc::changed_hands; }

private:
  std::size_t servers_;
  std::size_t broken_ = 0;
  std::size_t failed_ = 0;
  bool is_open_ = false;
};

struct vote_to_break {
  std::size_t node;
  fencing_token token;
};
// Throws what break_lock does.
void break_votes(client_state& state, const lock_name& name, const std::vector<vote_to_break>& votes,
                 const break_options& options);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
