// SPDX-License-Identifier: Apache-2.0
#include "script/keys.hpp"

#include "script/field.hpp"
#include "script/glob.hpp"

#include <utility>

namespace holdfast::script {

namespace {

constexpr std::string_view braces = "{}";

// What a cluster hashes of `key`: between the first `{` and the next `}`, if there is something; else all of it.
std::string hash_tag(std::string_view key) {
  if (const auto open = key.find('{'); open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) return std::string{key.substr(open + 1, close - open - 1)};
  }
  // A `}` would end our tag too early. Escaping it gives another slot, which only a cluster minds.
  return key.find('}') == std::string_view::npos ? std::string{key} : escape(key, braces);
}

}  // namespace

lock_keys keys_of(const lock_name& name, std::string_view prefix, bool is_counted) {
  std::string stem{prefix};
  if (name.how() == naming::plain) {
    stem += "plain:{" + hash_tag(name.text()) + "}:" + escape(name.text(), braces);
    return {name.text(), std::make_shared<const std::string>(std::move(stem)), is_counted};
  }
  stem += "{" + escape(name.text(), braces) + "}";
  stem.shrink_to_fit();  // Each of ten thousand waiters has one.
  return {std::move(stem), {}, is_counted};
}

std::string epoch_key(std::string_view prefix, std::optional<int> tag) {
  return std::string{prefix} + (tag ? "epoch:{" + std::to_string(*tag) + "}" : "epoch");
}

std::string quorum_key(std::string_view prefix) { return std::string{prefix} + "quorum"; }

std::string holder_pattern(const glob& names, std::string_view prefix) {
  std::string out = std::string{prefix} + "{";
  bool is_in_run = false;
  for (const auto& one : names.pieces()) {
    if (one.what != glob::piece::kind::byte) {
      if (!std::exchange(is_in_run, true)) out += '*';
      continue;
    }
    is_in_run = false;
    const std::string byte = escape({&one.byte, 1}, braces);
    if (byte.find_first_of("*?[\\") != std::string::npos) out += '\\';
    out += byte;
  }
  return out + "}";
}

std::optional<std::string> name_of_holder_key(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  if (key.size() < 3 || key.front() != '{' || key.back() != '}') return std::nullopt;
  key = key.substr(1, key.size() - 2);
  if (key.find_first_of(braces) != std::string_view::npos) return std::nullopt;
  auto name = unescape(key);
  // Only what keys_of would have written: "%41" for "A" is not ours.
  if (!name || escape(*name, braces) != key) return std::nullopt;
  return name;
}

}  // namespace holdfast::script
