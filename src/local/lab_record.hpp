// SPDX-License-Identifier: Apache-2.0
// What a lab is made of, and the file in which it says so: plain values and their text.
#pragma once

#include <holdfast/lab.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::local {

enum class lab_role { primary, replica, sentinel };

std::string_view word_of(lab_role role);
std::string_view word_of(lab_kind kind);

struct lab_member {
  lab_role role = lab_role::primary;
  int port = 0;
  int pid = 0;                 // 0: not started yet, or not known any more.
  std::uint64_t started = 0;   // Of that pid; process.hpp.
  std::size_t log_before = 0;  // How long its log was when we started it; not in the file.

  std::string address() const;
  std::string directory_name() const;  // In the lab's directory.
};

struct lab_record {
  lab_kind kind = lab_kind::single;
  bool persistent = false;
  bool made_directory = false;  // It was not there before.
  std::string boot{};           // The run of the kernel in which the pids mean something.
  std::vector<lab_member> members{};

  // The first primary.
  const lab_member& primary() const { return members.front(); }
};

// The name that sentinels give the primary.
inline constexpr std::string_view primary_name = "mymaster";

// What redis-server adds to a port for the bus of a cluster.
inline constexpr int bus_offset = 10'000;

// Which servers make up a lab, primaries first, each with a port of `ports`; no pids. Throws error with
// errc::invalid_option for a count that the kind cannot have.
std::size_t size_of(lab_kind kind, int count);
std::vector<lab_member> members_of(lab_kind kind, int count, const std::vector<int>& ports);

// What a client is given to find it.
std::string uri_of(const lab_record& lab);

std::string to_text(const lab_record& lab);

// nullopt for anything but a record of ours: whoever signals pids and removes directories believes no half of one.
std::optional<lab_record> parse_lab_record(std::string_view text);

}  // namespace holdfast::local
