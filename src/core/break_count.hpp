// SPDX-License-Identifier: Apache-2.0
// What a break of one lock on each of several servers has come to all in all.
#pragma once

#include <holdfast/error.hpp>

#include <cstddef>
#include <system_error>

namespace holdfast::core {

//  broken on         | else                            | is
//  ------------------+---------------------------------+------------------------------------------------------
//  a majority        | whatever                        | broken: without them the holder has no lock
//  some              | they have nothing of it         | broken: nobody has anything of it
//  some              | they did not say, or have it    | broken: it was none
//                    | under another token, and with   |
//                    | them it would be no lock        |
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
    } else if (how == errc::not_held) {
      ++gone_;
    } else if (how == errc::changed_hands) {
      ++may_have_it_;  // Somebody else's, or it, since it was seen: a vote gets another token until the lock is won.
    } else {
      ++failed_;
      is_open_ = is_open_ || how == outcome::unknown;
    }
  }
  // They did not say whether they have anything of it, and are not asked to break it.
  void add_silent(std::size_t servers) { may_have_it_ += servers; }
  end so_far() const {
    const bool may_be_left = failed_ > 0 || (may_have_it_ > 0 && broken_ + gone_ + may_have_it_ > servers_ / 2);
    if (is_by_majority() || (broken_ > 0 && !may_be_left)) return end::broken;
    return broken_ > 0 || is_open_ ? end::not_known : end::not_broken;
  }
  bool is_by_majority() const { return broken_ > servers_ / 2; }
  // The server has nothing of it any more, or something else.
  static bool is_gone(std::error_code how) { return how == errc::not_held || how == errc::changed_hands; }

private:
  std::size_t servers_;
  std::size_t broken_ = 0;
  std::size_t gone_ = 0;
  std::size_t failed_ = 0;
  std::size_t may_have_it_ = 0;
  bool is_open_ = false;
};

}  // namespace holdfast::core
