// SPDX-License-Identifier: Apache-2.0
// The strong types of a lock: its name, who holds it, and the fencing token that comes with a grant.
//
// Two strings are one type too many: the C++ incumbent passes a key where an owner belongs, and releases nothing.
// Everything here is a value: copy it, compare it, keep it; no call does IO and all are safe from any thread.
#pragma once

#include <holdfast/version.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast {
inline namespace v0 {

// The increasing number that comes with a grant (docs/fencing.md). Between two grants of one name the later has
// the larger token. Microseconds of the server's clock or more, always 16 digits, below 2^53.
// A default token is zero: "none"; no grant ever carries it.
class fencing_token {
public:
  constexpr fencing_token() = default;
  constexpr explicit fencing_token(std::uint64_t value) : value_{value} {}

  constexpr std::uint64_t value() const noexcept { return value_; }
  constexpr explicit operator bool() const noexcept { return value_ != 0; }
  friend constexpr auto operator<=>(fencing_token, fencing_token) = default;

  // Decimal, as SQL, JSON and HOLDFAST_TOKEN carry it.
  HOLDFAST_EXPORT std::string to_string() const;

  // Reads what to_string wrote: 1 to 16 decimal digits, not above 2^53 - 1; anything else is nullopt.
  HOLDFAST_EXPORT static std::optional<fencing_token> parse(std::string_view text) noexcept;

  // The largest token a script can count exactly: Lua numbers are doubles (hazards 0.7).
  static constexpr std::uint64_t max_value = (std::uint64_t{1} << 53) - 1;

private:
  std::uint64_t value_ = 0;
};

// Which process's entry this is, at the server: 128 random bits from getrandom(2), fresh for every entry.
// Knowing it is owning the lock, so it is never logged or shown.
class owner_id {
public:
  // 16 random bytes in, 32 hex digits out.
  HOLDFAST_EXPORT explicit owner_id(const std::array<unsigned char, 16>& random_bytes) noexcept;

  std::string_view hex() const noexcept { return {hex_.data(), hex_.size()}; }
  friend bool operator==(const owner_id&, const owner_id&) = default;

private:
  std::array<char, 32> hex_;
};

// How a name becomes a key.
enum class naming {
  holdfast,  // Key `hf:{NAME}`, escaped. The default; fences, lines and tools work in full.
  plain,     // The caller's exact key, to share a lock with redis-py, redsync, node-redlock, redis-plus-plus
             // or anything else that does SET NX PX. Side keys stay under our own prefix.
};

// A checked lock name: 1 to 512 bytes of UTF-8 without control characters. Under naming::plain any
// bytes are good; a client then refuses what begins with its prefix.
class lock_name {
public:
  // Checks `text`. On failure gives nullopt, sets `ec` to errc::invalid_name and, if `why` is given, writes one
  // sentence there that names the value and the byte.
  HOLDFAST_EXPORT static std::optional<lock_name> parse(std::string_view text, naming how, std::error_code& ec,
                                                        std::string* why = nullptr);

  const std::string& text() const noexcept { return text_; }
  naming how() const noexcept { return how_; }
  friend bool operator==(const lock_name&, const lock_name&) = default;

private:
  lock_name(std::string_view text, naming how) : text_{text}, how_{how} {}

  std::string text_;
  naming how_;
};

}  // namespace v0
}  // namespace holdfast
