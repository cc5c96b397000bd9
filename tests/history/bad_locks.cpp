// SPDX-License-Identifier: Apache-2.0
#include "history/bad_locks.hpp"

#include "support/eventually.hpp"

#include <stdexcept>

namespace holdfast::test::history {

bad_hold bad_lock::fresh(int part) {
  // From before the request, less than the server counts; as ours, it may believe a little less than its ttl.
  const instant until = boottime().count() + (ttl_ms - 3) * 1'000'000;
  return {std::to_string(random_()), 0, until, part};
}

bool bad_lock::set_if_free(const std::string& key, const bad_hold& held) {
  return is_ok(server_("SET", key, held.id, "NX", "PX", std::to_string(ttl_ms)));
}

std::optional<bad_hold> bad_lock::attempt(int part) {
  bad_hold held = fresh(part);
  if (!set_if_free("lock", held)) return std::nullopt;
  return held;
}

outcome bad_lock::release(const bad_hold& held) {
  const auto ended =
      server_("EVAL", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
              "1", "lock", held.id);
  return ended == 1 ? outcome::released : outcome::already_lost;
}

namespace {

class has_none : public bad_lock {
public:
  using bad_lock::bad_lock;
  bool tells() const override { return true; }
};

// B42: DEL without a compare. Whoever is late deletes the lock of the next one.
class deletes_anothers : public bad_lock {
public:
  using bad_lock::bad_lock;
  outcome release(const bad_hold& /*held*/) override {
    return server_("DEL", "lock") == 1 ? outcome::released : outcome::already_lost;
  }
};

// It was granted, so it holds it: until it releases, whatever the clock says.
class does_not_look_at_the_clock : public bad_lock {
public:
  using bad_lock::bad_lock;
  void look(bad_hold& held) override { held.until = boottime().count(); }
};

// Renewal by SET, which makes a lock that was lost anew, over that of the next one.
class renews_by_set : public bad_lock {
public:
  using bad_lock::bad_lock;
  void look(bad_hold& held) override {
    if (boottime().count() < last_ + 50'000'000) return;  // Later than its ttl, as after a pause.
    last_ = boottime().count();
    const instant until = fresh(held.part).until;
    if (is_ok(server_("SET", "lock", held.id, "PX", std::to_string(ttl_ms)))) held.until = until;
  }
  std::optional<bad_hold> attempt(int part) override {
    last_ = boottime().count();
    return bad_lock::attempt(part);
  }

private:
  instant last_ = 0;
};

// A semaphore of two by INCR and DECR. The expiry, which gives back what a crashed holder had, belongs to the counter:
// with it goes what all the others have.
class counts_only : public bad_lock {
public:
  using bad_lock::bad_lock;
  std::optional<bad_hold> attempt(int part) override {
    const bad_hold held = fresh(part);
    const auto count = server_("INCR", "lock");
    if (count == 1) server_("PEXPIRE", "lock", std::to_string(ttl_ms));
    if (count.number <= 2) return held;
    server_("DECR", "lock");
    return std::nullopt;
  }
  outcome release(const bad_hold& /*held*/) override {
    server_("DECR", "lock");
    return outcome::released;
  }
};

// Readers look for a writer; the writer looks for other writers only.
class ignores_readers : public bad_lock {
public:
  using bad_lock::bad_lock;
  std::optional<bad_hold> attempt(int part) override {
    if (part == everything) return bad_lock::attempt(part);
    const bad_hold held = fresh(part);
    if (server_("EXISTS", "lock") == 1 || !set_if_free("reader:" + held.id, held)) return std::nullopt;
    return held;
  }
  outcome release(const bad_hold& held) override {
    if (held.part == everything) return bad_lock::release(held);
    return server_("DEL", "reader:" + held.id) == 1 ? outcome::released : outcome::already_lost;
  }
};

// Tokens by GET and SET: two who read the same number give the same token.
class counts_tokens_by_get_and_set : public bad_lock {
public:
  using bad_lock::bad_lock;
  std::optional<bad_hold> attempt(int part) override {
    const auto last = server_("GET", "token");
    auto held = bad_lock::attempt(part);
    if (!held) return held;
    held->token = (last.is_nil() ? 0 : std::stoull(last.text)) + 1;
    server_("SET", "token", std::to_string(held->token));
    return held;
  }
};

// A reentrant lock that does not count: the first unlock frees it.
class frees_at_the_first_unlock : public bad_lock {
public:
  using bad_lock::bad_lock;
  void unlock_once(const bad_hold& held) override { bad_lock::release(held); }
};

// Safe and useless: it says that it is held when nobody has asked. The only one that a witness would let pass.
class says_busy_unasked : public has_none {
public:
  using has_none::has_none;
  std::optional<bad_hold> attempt(int part) override {
    return random_() % 4 == 0 ? std::nullopt : bad_lock::attempt(part);
  }
};

}  // namespace

std::unique_ptr<bad_lock> make_bad_lock(const std::string& mistake, const std::string& socket, unsigned seed) {
  if (mistake == "none") return std::make_unique<has_none>(socket, seed);
  if (mistake == "deletes_anothers") return std::make_unique<deletes_anothers>(socket, seed);
  if (mistake == "does_not_look_at_the_clock") return std::make_unique<does_not_look_at_the_clock>(socket, seed);
  if (mistake == "renews_by_set") return std::make_unique<renews_by_set>(socket, seed);
  if (mistake == "counts_only") return std::make_unique<counts_only>(socket, seed);
  if (mistake == "ignores_readers") return std::make_unique<ignores_readers>(socket, seed);
  if (mistake == "counts_tokens_by_get_and_set") return std::make_unique<counts_tokens_by_get_and_set>(socket, seed);
  if (mistake == "frees_at_the_first_unlock") return std::make_unique<frees_at_the_first_unlock>(socket, seed);
  if (mistake == "says_busy_unasked") return std::make_unique<says_busy_unasked>(socket, seed);
  throw std::runtime_error("no such mistake: " + mistake);
}

}  // namespace holdfast::test::history
