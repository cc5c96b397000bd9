// SPDX-License-Identifier: Apache-2.0
// The public functions: ending a lab, and hurting its nodes.
#include "local/lab.hpp"

#include "local/clock.hpp"
#include "local/directory_lock.hpp"
#include "local/failure.hpp"
#include "local/lab_ready.hpp"
#include "local/launch.hpp"
#include "local/process.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

// Longer than a start may take by default.
constexpr auto patience_for_lock = 40s;
constexpr auto patience_for_node = 15s;

// A lab under its lock.
struct opened_lab {
  explicit opened_lab(lab_place where)
      : place{std::move(where)},
        lock{place.lock_file(), 0600, boottime_now() + patience_for_lock},
        record{load(place)} {}

  lab_place place;
  directory_lock lock;
  std::optional<lab_record> record;
};

lab end_lab(std::string_view directory) {
  const auto place = find_lab_place(directory);
  if (!place) return {.directory = std::string{directory}};
  try {
    opened_lab opened{*place};
    // Another call may have ended it while we waited; then the lock's file is ours to remove.
    if (!opened.record) opened.record = lab_record{};
    const bool has_members = !opened.record->members.empty();
    const auto ended = end_all(opened.place, *opened.record);
    remove_all(opened.place, *opened.record);
    return has_members ? shown(opened.place, *opened.record, ended.members) : lab{.directory = place->directory};
  } catch (const error&) {
    std::error_code ec;
    if (!std::filesystem::exists(place->directory, ec) && !ec) return {.directory = place->directory};  // As above.
    throw;
  }
}

// The node of `address`, with its lab.
struct chosen_node : opened_lab {
  chosen_node(lab_place where, std::string_view address) : opened_lab{std::move(where)} {
    if (!record) fail(place.directory, "Its lab has been ended.");
    const auto found = std::find_if(record->members.begin(), record->members.end(),
                                    [&](const auto& one) { return one.address() == address; });
    if (found == record->members.end()) fail(place.directory, fmt::format("No node of its lab is at {}.", address));
    member = &*found;
  }

  process_handle process() const {
    return member->pid == 0 ? process_handle::none() : process_handle{member->pid, member->started};
  }

  void signal(int number) const {
    if (process().signal(number)) return;
    fail(member->address(), member->pid == 0 ? "It does not run, or its process is not known."
                                             : fmt::format("Its process {} does not run.", member->pid));
  }

  lab_member* member = nullptr;
};

chosen_node choose(std::string_view directory, std::string_view address) {
  auto place = find_lab_place(directory);
  if (!place) fail(directory, "No lab is there.");
  return {std::move(*place), address};
}

void wait_for_state(const chosen_node& node, bool is_stopped) {
  const auto give_up_at = boottime_now() + patience_for_node;
  while ((state_of(node.member->pid) == 'T') != is_stopped) {
    if (boottime_now() >= give_up_at) fail(node.member->address(), "Its process does not obey SIGSTOP and SIGCONT.");
    pause_for(1ms);
  }
}

void kill_node(std::string_view directory, std::string_view address) {
  const auto node = choose(directory, address);
  const auto process = node.process();
  process.signal(SIGKILL);
  if (!process.ended_within(patience_for_node)) fail(address, "Its process was killed and is still there.");
  end_server_of(node.place, *node.member);
}

// Of no server that lives, known or not.
void drop_keys(const lab_place& place, const lab_member& member) {
  const auto home = place.home_of(member);
  const auto no_server = when_free(home, [&] { return server_lock::try_take(home); });
  std::error_code ec;
  for (const char* name : {"/dump.rdb", "/appendonlydir", "/appendonly.aof"}) {  // The last one of Redis 6.2.
    std::filesystem::remove_all(home + name, ec);
    if (ec) fail(home + name, "It cannot be removed.", ec.message());
  }
}

std::string in_its_log(const lab_place& place, const lab_member& member) {
  return fmt::format("; {} says how far it is, and it goes on", place.log_of(member));
}

int restart_node(std::string_view directory, std::string_view address, lab_data data) {
  auto node = choose(directory, address);
  auto& member = *node.member;
  if (node.process().running()) fail(address, fmt::format("Its process {} still runs; kill it first.", member.pid));
  if (data == lab_data::dropped)
    drop_keys(node.place, member);
  else if (!node.record->persistent && member.role != lab_role::sentinel)
    fail(address, "Its lab is not persistent, so that no keys were kept: start it with lab_data::dropped.");
  launch_member(node.place, find_server(), *node.record, member);
  // Of the others some may be dead, on purpose: only this one is asked after.
  auto alone = *node.record;
  alone.members = {member};
  try {
    const lab_patience patience{
        node.place, alone, boottime_now() + patience_for_node, {}, in_its_log(node.place, member)};
    patience.until([&] { return missing_of(member); });
  } catch (const port_taken&) {
    fail(address, "Another program has taken its port.");
  }
  return member.pid;
}

// This room speaks of the local: server; here it is a lab that failed.
template <class Work>
auto as_lab(Work work) {
  try {
    return work();
  } catch (const error& e) {
    auto detail = e.detail();
    if (e.code() == errc::local_server) detail.endpoint = "lab";
    throw error(e.code(), std::move(detail));
  }
}

}  // namespace
}  // namespace holdfast::local

namespace holdfast {
inline namespace v0 {

lab start_lab(lab_kind kind, const lab_options& options) {
  return local::as_lab([&] { return local::start(kind, options, local::free_ports); });
}

lab stop_lab(std::string_view directory) {
  return local::as_lab([&] { return local::end_lab(directory); });
}

void kill_lab_node(std::string_view directory, std::string_view address) {
  local::as_lab([&] { local::kill_node(directory, address); });
}

void pause_lab_node(std::string_view directory, std::string_view address) {
  local::as_lab([&] {
    const auto node = local::choose(directory, address);
    node.signal(SIGSTOP);
    local::wait_for_state(node, true);
  });
}

void resume_lab_node(std::string_view directory, std::string_view address) {
  local::as_lab([&] {
    const auto node = local::choose(directory, address);
    node.signal(SIGCONT);
    local::wait_for_state(node, false);
  });
}

int restart_lab_node(std::string_view directory, std::string_view address, lab_data data) {
  return local::as_lab([&] { return local::restart_node(directory, address, data); });
}

}  // namespace v0
}  // namespace holdfast
