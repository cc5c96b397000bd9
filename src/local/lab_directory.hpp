// SPDX-License-Identifier: Apache-2.0
// A lab's directory: which one, whether it can be trusted, and what is ours in it. Whoever could write there could make
// us signal pids and remove directories, so it must be ours and nobody else's to write.
#pragma once

#include "local/lab_record.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::local {

struct lab_place {
  std::string directory{};  // Absolute, no trailing slash.
  bool was_made = false;    // By make_lab_place().

  std::string record_file() const { return directory + "/lab"; }
  std::string lock_file() const { return directory + "/lab.lock"; }
  std::string home_of(const lab_member& member) const { return directory + "/" + member.directory_name(); }
  std::string config_of(const lab_member& member) const { return home_of(member) + "/redis.conf"; }
  std::string log_of(const lab_member& member) const { return home_of(member) + "/redis.log"; }
};

// For a new lab: the directory that is named, made if it is missing, or a fresh one. Throws error with
// errc::local_server for one that is in use, not empty, or not to be trusted.
lab_place make_lab_place(std::string_view directory);

// Of an existing lab. nullopt for an empty directory; throws for one that is missing or something else.
std::optional<lab_place> find_lab_place(std::string_view directory);

// The record is replaced as a whole. nullopt when there is none; throws for one that is damaged.
void save(const lab_place& place, const lab_record& lab);
std::optional<lab_record> load(const lab_place& place);

// Sends KILL to the processes that are still those of the record, and to no others, and waits for their end. Returns
// the members that ran. Throws error with errc::local_server if that of one cannot be told.
std::vector<lab_member> end_all(const lab_record& lab);

// What a lab has made in there; the directory itself only if that was made for it and has nothing else in it.
void remove_nodes(const lab_place& place, const lab_record& lab);
void remove_all(const lab_place& place, const lab_record& lab);

}  // namespace holdfast::local
