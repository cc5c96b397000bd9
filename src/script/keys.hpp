// SPDX-License-Identifier: Apache-2.0
// Every key of a lock comes from this one function (B29), so that they share a hash tag and a prefix (B67, B99).
#pragma once

#include <holdfast/names.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::script {

// holdfast naming: hf:{NAME}, and hf:{NAME}:fence, :line, :waiters, :break, :holders and :wanted, with `%`, `{`, `}`
//                  and control bytes of NAME as %XX.
// plain naming:    KEY as it is; hf:plain:{TAG}:ESCAPED-WHOLE-KEY:fence and so on, where TAG is KEY's own hash tag
//                  (the whole key, escaped, if it has none that the server would use): same slot as KEY on a cluster
//                  unless escaping had to change the tag.
struct lock_keys {
  std::string fence() const { return beside(":fence"); }      // The last stamp and the owner id that got it.
  std::string line() const { return beside(":line"); }        // Who waits, by ticket.
  std::string waiters() const { return beside(":waiters"); }  // What each of them wants; when its process last looked.
  std::string broken() const { return beside(":break"); }     // The last break, kept for a week.
  std::string holders() const { return beside(":holders"); }  // Of a counted kind: how much each holder has of it.
  std::string wanted() const { return beside(":wanted"); }    // Of a quorum: its first waiter found no room (P25).

  std::string holder;
  std::shared_ptr<const std::string> stem{};  // Of the keys beside it. Null: the holder key.
  // Which scripts serve it: false for a lock with one holder, true for semaphores and shared locks.
  bool is_counted = false;

private:
  std::string beside(const char* suffix) const { return (stem ? *stem : holder) + suffix; }
};

lock_keys keys_of(const lock_name& name, std::string_view prefix, bool is_counted = false);

// Where a server's epoch is kept (epoch.lua): of the server, so of no lock, whose keys begin with the prefix and `{`.
// `tag`: of a node of a cluster, a number whose slot it serves.
std::string epoch_key(std::string_view prefix, std::optional<int> tag = {});
// And to which list of servers it belongs (vote.lua).
std::string quorum_key(std::string_view prefix);

class glob;

// A SCAN pattern of every holder key whose name `names` matches, and of more: what stands for one byte of a name is `*`
// here, because that byte may be three of the key. `prefix` is free of glob characters.
std::string holder_pattern(const glob& names, std::string_view prefix);

// The name behind a holder key; nullopt for side keys and for keys that are not ours.
std::optional<std::string> name_of_holder_key(std::string_view key, std::string_view prefix);

}  // namespace holdfast::script
