// SPDX-License-Identifier: Apache-2.0
// Every key of a lock comes from this one function (B29), so that they share a hash tag and a prefix (B67, B99).
#pragma once

#include <holdfast/names.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::script {

// holdfast naming: hf:{NAME}, hf:{NAME}:fence, :line, :waiters, :break and :holders with `%`, `{`, `}` and control
// bytes of NAME
//                  as %XX.
// plain naming:    KEY as it is; hf:plain:{TAG}:ESCAPED-WHOLE-KEY:fence and so on, where TAG is KEY's own hash tag
//                  (the whole key, escaped, if it has none that the server would use): same slot as KEY on a cluster
//                  unless escaping had to change the tag.
struct lock_keys {
  std::string holder;
  std::string fence;      // The last stamp and the owner id that got it.
  std::string line;       // Who waits, by ticket.
  std::string waiters;    // What each of them wants, and when its process last looked.
  std::string broken;     // The last break, kept for a week.
  std::string holders{};  // Of a counted kind: how much each holder has of it.
  // Which scripts serve it: false for a lock with one holder, true for semaphores and shared locks.
  bool is_counted = false;
};

lock_keys keys_of(const lock_name& name, std::string_view prefix, bool is_counted = false);

// The SCAN pattern of every holder key whose name matches `glob`; `prefix` is free of glob characters.
// In the glob `{`, `}` and `%` stand for themselves, so they are escaped as in a name.
std::string holder_pattern(std::string_view glob, std::string_view prefix);

// The name behind a holder key; nullopt for side keys and for keys that are not ours.
std::optional<std::string> name_of_holder_key(std::string_view key, std::string_view prefix);

}  // namespace holdfast::script
