// SPDX-License-Identifier: Apache-2.0
// A lab's directory: which one, whether it can be trusted, and what is ours in it. Whoever could write there could make
// us signal pids and remove directories, so it must be ours and nobody else's to write.
#pragma once

#include "local/lab_record.hpp"
#include "local/server_lock.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::local {

struct lab_place {
  std::string directory{};  // Absolute, no trailing slash.
  bool was_made = false;    // By make_lab_place().

  std::string record_file() const { return directory + "/lab"; }
  std::string fresh_record_file() const { return record_file() + ".new"; }  // Before it takes the other's place.
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

// The record is replaced as a whole. nullopt when there is none; throws for one that is damaged. Of one that another
// boot wrote the pids are 0, and the boot is this one.
void save(const lab_place& place, const lab_record& lab);
std::optional<lab_record> load(const lab_place& place);

struct ended_lab {
  std::vector<lab_member> members{};      // Those that ran.
  std::vector<server_lock> no_servers{};  // As long as they are there nobody starts one in the nodes' directories.
};

// Sends KILL to the processes that are still those of the record, to those that are servers of its directories without
// being in it (end_server_of), and to no others, and waits for their end. Throws error with errc::local_server if that
// of one cannot be told.
ended_lab end_all(const lab_place& place, const lab_record& lab);

// Whoever started a server may have been killed before the record said so. Ends what works in the node's directory and
// has its lock, waits until it is gone (10 s at most), and puts its pid into `member`; the lock is ours then, or empty
// if there is no directory. Throws if somebody keeps it who cannot be ended from here.
std::optional<server_lock> end_server_of(const lab_place& place, lab_member& member);

// What a lab has made in there; the directory itself only if that was made for it and has nothing else in it. Throws
// error with errc::local_server for the first node's directory that cannot be removed, when the others are: then its
// record and its lock's file stay, so that whoever mends it can remove the rest in the same way.
void remove_nodes(const lab_place& place, const lab_record& lab);
void remove_all(const lab_place& place, const lab_record& lab);

}  // namespace holdfast::local
