// SPDX-License-Identifier: Apache-2.0
// Who of one process that wants the same exclusive lock asks the server, and who is handed the lease (P14, P14b). Pure:
// how they sleep, and how one is told, is the caller's.
//
//  who joins                        | and then
//  ---------------------------------+---------------------------------------------------------------------
//  nobody before it                 | asks the server
//  behind others                    | waits: until it is handed the lease; until it is the first, and nobody asks
//                                   | and nothing is handed on any more: then it asks the server; or until its time
//                                   | is over or it is cancelled
//  its answer is a grant            | holds; the chain begins, if the server reserved tokens
//  its answer is anything else      | the next one asks; where the server is in trouble, all do, each in its own time
//  its time is over without one     | the next one asks, and is patient from where the silence began; all do, if that
//                                   | is as long as a silence may be
//
// Whose time is over has asked nobody: what it waited for is what those before it have heard since it joined, or had
// heard then. If that is nothing, it was a silent server and not somebody else's hold (C5).
//
// A chain ends by itself after hand_over_limits::longest, so nobody depends on a holder that never gives back.
#pragma once

#include "core/hand_over.hpp"

#include <holdfast/error.hpp>

#include <atomic>
#include <list>
#include <memory>
#include <optional>

namespace holdfast::core {

// With less time left than that, who has waited behind others does not ask (acquire_call.hpp): their time may end at
// the same moment, and a question of each comes to a near server then.
constexpr duration too_little_in_a_crowd = std::chrono::milliseconds{20};

class hand_over_queue {
public:
  struct waiter {
    hand_over_wish wish{};
    bool is_told_to_ask = false;
    errc heard = errc::server_silent;  // By those who have asked, until they ended.
    time_point silent_since = never;   // What who asked in vain met, if that was a silence; else never.
  };
  using waiter_ptr = std::shared_ptr<waiter>;

  void join(waiter_ptr who);
  // It was handed the lease and came too late for it: it is the first again.
  void join_again(waiter_ptr who);
  // What its time went to, if it is over now.
  errc heard_by(const waiter& who) const;
  // Where whoever asks writes down what the server says, until `got` or `failed`. By any thread, at any time.
  std::atomic<errc>& news() { return news_; }
  // Its time is over, or it is cancelled. The first is to be told.
  void leave(const waiter_ptr& who);

  bool may_ask(const waiter& who, time_point now);
  // When it is to look again if nobody tells it anything. `until`: when its wait is over.
  time_point wake_at(const waiter& who, time_point now, time_point until) const;
  // Leaves to ask, and says `got` or `failed` when the answer is there. True: others wait behind it.
  bool go_and_ask(const waiter_ptr& who);
  // The last token that this process had, or might have handed on; none: it has not been there for a while.
  fencing_token last() const { return last_; }

  // A lease of this process. The token alone does not say which: a server that lost its data and whose clock stands may
  // grant one twice (seed 26203511).
  struct lease_of {
    owner_id owner;
    fencing_token token;
    friend bool operator==(const lease_of&, const lease_of&) = default;
  };
  // The server granted `first`, with `block` tokens more; 0: nothing may be handed on. The first is to be told.
  void got(const lease_of& first, int block, time_point granted_at, const hand_over_wish& wish,
           const hand_over_limits& limits);
  // What it met instead. `silent_since`: when it heard the server last.
  struct in_vain {
    errc code;
    time_point silent_since = never;
  };
  // The first is to be told. True: all are, because it was not for somebody else's sake, nor for its own, but could not
  // be asked. `patience`: so long a silence is put up with.
  [[nodiscard]] bool failed(const in_vain& what, time_point now, duration patience);

  // The next token, if `held`, which is given back, may be handed to the first. It is used up, also if nothing comes of
  // it.
  std::optional<fencing_token> next_token(const lease_of& held, time_point now, time_point deadline);
  // The first has it, is out of the queue, and is to be told.
  waiter_ptr hand_on(fencing_token next);
  // Whether the server is to be asked, behind next_token(), for `block` tokens more than `last`: said once.
  // `is_granted`: to be set when it has reserved them, by any thread, and never if it has not.
  struct more {
    fencing_token last;
    int block;
    std::shared_ptr<std::atomic<bool>> is_granted;
  };
  std::optional<more> wants_more(time_point now, time_point deadline);
  // It is given back, and not handed on. True: the first is to be told.
  bool ended(const lease_of& held);

  // Null: nobody waits.
  waiter_ptr first() const { return waiting_.empty() ? nullptr : waiting_.front(); }
  const std::list<waiter_ptr>& waiting() const { return waiting_; }
  bool is_idle() const { return waiting_.empty() && asking_ == 0 && !chain_; }

private:
  struct held_chain {
    hand_over_chain tokens;
    lease_of held;
    std::shared_ptr<std::atomic<bool>> has_more{};  // None: it was not asked, or has been heard.
  };

  bool is_first(const waiter& who) const { return !waiting_.empty() && waiting_.front().get() == &who; }
  void end_asking(errc news);
  void hear_of_more();

  std::list<waiter_ptr> waiting_{};
  int asking_ = 0;
  std::atomic<errc> news_{errc::server_silent};  // Of all who ask: more than one where the server is in trouble.
  std::optional<held_chain> chain_{};
  fencing_token last_{};
};

}  // namespace holdfast::core
