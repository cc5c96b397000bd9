// SPDX-License-Identifier: Apache-2.0
// The members of <holdfast/names.hpp>. They stand in this room because the scripts decide what a name, an owner id
// and a token may be.
#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include "script/field.hpp"

#include <fmt/format.h>

namespace holdfast {
inline namespace v0 {

namespace {

constexpr std::size_t longest_name = 512;

struct flaw {
  const char* what;
  std::size_t at;  // The first byte is 1.
};

// The number of bytes of the UTF-8 character at the start of `text`; 0 when there is none. Overlong forms, halves of
// surrogate pairs and numbers above U+10FFFF are none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return size;
}

// C0, DEL, and C1, which some terminals obey when it comes as UTF-8.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::optional<flaw> flaw_of(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) return flaw{"is not UTF-8", at + 1};
    if (is_control(text.substr(at, size))) return flaw{"has a control character", at + 1};
    at += size;
  }
  return std::nullopt;
}

// For a message: every byte that could disturb a terminal as \xXX, and not more of it than helps.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += fmt::format("\\x{:02X}", byte);
    }
  }
  return text.size() > 80 ? out + "..." : out;
}

}  // namespace

std::string fencing_token::to_string() const { return std::to_string(value_); }

std::optional<fencing_token> fencing_token::parse(std::string_view text) noexcept {
  const auto number = script::parse_digits(text, 16);
  if (!number || *number > max_value) return std::nullopt;
  return fencing_token{*number};
}

owner_id::owner_id(const std::array<unsigned char, 16>& random_bytes) noexcept : hex_{} {
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t at = 0;
  for (const unsigned char byte : random_bytes) {
    hex_[at++] = digits[byte >> 4];
    hex_[at++] = digits[byte & 15];
  }
}

std::optional<lock_name> lock_name::parse(std::string_view text, naming how, std::error_code& ec, std::string* why) {
  ec.clear();
  const auto refuse = [&](std::string sentence) {
    ec = errc::invalid_name;
    if (why) *why = std::move(sentence);
    return std::nullopt;
  };
  if (text.empty()) return refuse("the lock name is empty: it must have 1 to 512 bytes");
  if (text.size() > longest_name) {
    return refuse(fmt::format("lock name '{}' has {} bytes, more than {}", shown(text), text.size(), longest_name));
  }
  if (how == naming::holdfast) {
    if (const auto found = flaw_of(text)) {
      return refuse(fmt::format("lock name '{}' {} at byte {}", shown(text), found->what, found->at));
    }
  }
  return lock_name{text, how};
}

}  // namespace v0
}  // namespace holdfast
