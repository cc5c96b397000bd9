// SPDX-License-Identifier: Apache-2.0
// When a lab is what it says. Each question has an answer in words: what is still missing, or nothing.
#pragma once

#include "local/lab_directory.hpp"
#include "local/lab_record.hpp"

#include "base/time.hpp"

#include <functional>
#include <stop_token>
#include <string>

namespace holdfast::local {

// That it is this process which answers at its port, and has read its files.
std::string missing_of(const lab_member& member);

// The whole lab: links, agreement, slots.
std::string missing_of(const lab_record& lab);

// Of replicas alone: that all are in sync. For sentinels to be started after that.
std::string missing_replicas_of(const lab_record& lab);

// Another process was faster and has one of our ports. Not an error: new ports are drawn.
struct port_taken {};

// Asks again and again.
struct lab_patience {
  const lab_place& place;
  const lab_record& lab;
  time_point give_up_at;
  std::stop_token cancel{};
  std::string advice{};  // How there would be more time; begins with what stands before it.

  // Returns when `missing` says nothing. Throws error when it is too late, when it was cancelled, or when a server that
  // was started has ended; port_taken if that was why.
  void until(const std::function<std::string()>& missing) const;

  // The same where nothing is asked.
  void check(const std::string& still_missing) const;

private:
  void look_for_dead() const;
};

}  // namespace holdfast::local
