// SPDX-License-Identifier: Apache-2.0
#include "local/lab_directory.hpp"

#include "local/clock.hpp"
#include "local/directory.hpp"
#include "local/failure.hpp"
#include "local/process.hpp"
#include "local/shell_word.hpp"
#include "local/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string checked_path(std::string_view directory) {
  if (directory.empty() || directory.find('\0') != std::string_view::npos)
    fail(directory, "That is no name of a directory.");
  return absolute(directory);
}

// redis-server reads the path of its configuration as a pattern where one of these is in it. Where no file matches it
// runs without one, on all of the machine's addresses.
bool is_read_as_a_pattern(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

void check_is_no_pattern(const std::string& directory) {
  if (!is_read_as_a_pattern(directory)) return;
  fail(directory,
       "Its path has *, ? or [ in it, which redis-server reads as a pattern: it would not find its configuration. Name "
       "a directory without them.");
}

// False if nothing is there.
bool is_there_and_ours(const std::string& directory, aim what_for) {
  struct stat seen {};
  if (::lstat(directory.c_str(), &seen) != 0) {
    if (errno == ENOENT) return false;
    fail_with_errno(directory, "It cannot be examined.", errno);
  }
  if (S_ISLNK(seen.st_mode)) fail(directory, "It is a symbolic link; name the directory itself.");
  if (!S_ISDIR(seen.st_mode)) fail(directory, "It is not a directory.");
  if (seen.st_uid != ::geteuid())
    fail(directory, fmt::format("It belongs to user {} and not to you (user {}).", seen.st_uid, ::geteuid()));
  if ((seen.st_mode & 0022u) != 0)
    fail(directory, std::string{"Others may write into it, and could put other processes' numbers there. "} +
                        (what_for == aim::make ? "Name a directory of your own; one that is not there yet is made."
                                               : "Name the directory of a lab: that is its user's alone to write."));
  return true;
}

bool has_record(const lab_place& place) {
  struct stat seen {};
  return ::lstat(place.record_file().c_str(), &seen) == 0;
}

// A lock's file alone is what is left of a call that was too late; a record that is not in its place yet, of one that
// was killed before it had started anything.
bool is_empty(const lab_place& place) {
  std::error_code ec;
  bool has_others = false;
  for (fs::directory_iterator at{place.directory, ec}; !ec && at != fs::directory_iterator{}; at.increment(ec))
    has_others = has_others || (at->path() != place.lock_file() && at->path() != place.fresh_record_file());
  if (ec) fail(place.directory, "What is in it cannot be read.", ec.message());
  return !has_others;
}

bool is_fit_for_fresh_directories(const char* path) {
  struct stat seen {};
  return path != nullptr && *path == '/' && !is_read_as_a_pattern(path) && ::stat(path, &seen) == 0 &&
         S_ISDIR(seen.st_mode) && ::access(path, W_OK | X_OK) == 0;
}

// Whatever has those pids now, it is nothing of ours. In a container with a boot of its own the servers may live all
// the same, and whoever starts one again writes a pid of this boot beside the others': they are known by their
// directories.
void forget_pids_of_another_boot(lab_record& lab) {
  const auto now = boot_id();
  if (lab.boot == now) return;
  lab.boot = now;
  for (auto& member : lab.members) member.pid = 0, member.started = 0;
}

// Not in XDG_RUNTIME_DIR: that is removed at its user's last logout, and the servers live on, which nobody can end
// then.
lab_place make_fresh() {
  const char* named = std::getenv("TMPDIR");
  const std::string base = is_fit_for_fresh_directories(named) ? named : "/tmp";
  auto pattern = base + "/holdfast-lab-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail_with_errno(base, "No directory can be made there.", errno);
  restore_owners_rights(pattern);
  return {checked_path(pattern), true};
}

void wait_for_all(const std::vector<process_handle>& ending, time_point give_up_at) {
  for (const auto& one : ending) {
    const auto left = std::max(give_up_at - boottime_now(), duration{0});
    one.ended_within(std::chrono::ceil<std::chrono::milliseconds>(left));
  }
}

}  // namespace

lab_place make_lab_place(std::string_view directory) {
  if (directory.empty()) return make_fresh();
  lab_place place{checked_path(directory), false};
  check_is_no_pattern(place.directory);
  if (!is_there_and_ours(place.directory, aim::make)) {
    if (!make_directory(place.directory)) fail_with_errno(place.directory, "It cannot be made.", errno);
    place.was_made = true;
  }
  if (has_record(place))
    fail(place.directory, "It has a lab already: `holdfast lab stop " + shell_word(place.directory) +
                              "` ends that one; or name another directory.");
  if (!is_empty(place)) fail(place.directory, "It is not empty; a lab wants a directory of its own.");
  return place;
}

std::optional<lab_place> find_lab_place(std::string_view directory) {
  lab_place place{checked_path(directory), false};
  if (!is_there_and_ours(place.directory, aim::find))
    fail(place.directory, "Nothing is there: its lab has been ended, or it is another directory.");
  if (has_record(place)) return place;
  if (is_empty(place)) return std::nullopt;
  fail(place.directory, "It is not the directory of a lab: it has no file `lab`. Nothing in it was touched.");
}

void save(const lab_place& place, const lab_record& lab) {
  write_whole_file(place.record_file(), to_text(lab), 0600, "The record of the lab cannot be written.");
}

std::optional<lab_record> load(const lab_place& place) {
  if (!has_record(place)) return std::nullopt;
  std::ostringstream text;
  text << std::ifstream{place.record_file()}.rdbuf();
  auto lab = parse_lab_record(text.str());
  if (!lab)
    fail(place.record_file(),
         "It is damaged, and what it says about processes is not believed: end those that run yourself (redis-cli -p "
         "PORT SHUTDOWN for each `node-PORT` beside it), then remove the directory.");
  forget_pids_of_another_boot(*lab);
  return lab;
}

std::optional<server_lock> end_server_of(const lab_place& place, lab_member& member) {
  const auto home = place.home_of(member);
  struct stat seen {};
  if (::lstat(home.c_str(), &seen) != 0 && errno == ENOENT) return std::nullopt;
  const auto give_up_at = boottime_now() + 10s;
  std::vector<process_handle> signalled;
  for (;;) {
    if (auto lock = server_lock::try_take(home)) {
      wait_for_all(signalled, give_up_at);  // Who ends lets its lock go first, and its port later.
      return lock;
    }
    for (const int pid : servers_of(home)) {
      process_handle process{pid};
      // Asked again of what we hold on to now: the number may have been given to another one.
      if (!works_in(pid, home) || !process.signal(SIGKILL)) continue;
      if (std::exchange(member.pid, pid) != pid || signalled.empty()) signalled.push_back(std::move(process));
    }
    if (boottime_now() >= give_up_at)
      fail(home,
           "It is locked, as by a server that lives, and whoever did that cannot be ended from here: a program of "
           "another user or container, or a server whose disk hangs. Nothing in it was removed.");
    pause_for(2ms);
  }
}

ended_lab end_all(const lab_place& place, const lab_record& lab) {
  ended_lab ended;
  std::vector<process_handle> processes;  // All of them, before the first is hurt: one may be out of sight.
  std::vector<bool> ran;
  for (const auto& member : lab.members) {
    processes.push_back(member.pid == 0 ? process_handle::none() : process_handle{member.pid, member.started});
    ran.push_back(processes.back().running());
  }
  for (const auto& process : processes) process.signal(SIGKILL);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    auto member = lab.members[i];
    if (!processes[i].ended_within(10s))
      fail(member.address(),
           fmt::format("Its process {} was killed and is still there; is its disk hanging?", member.pid));
    auto unrecorded = member;
    unrecorded.pid = 0;
    if (auto lock = end_server_of(place, unrecorded)) ended.no_servers.push_back(std::move(*lock));
    if (!ran[i]) member.pid = unrecorded.pid;
    if (member.pid != 0) ended.members.push_back(member);
  }
  return ended;
}

void remove_nodes(const lab_place& place, const lab_record& lab) {
  std::string first;
  std::error_code why;
  for (const auto& member : lab.members) {
    std::error_code ec;
    fs::remove_all(place.home_of(member), ec);
    if (!ec || why) continue;
    first = place.home_of(member);
    why = ec;
  }
  if (why)
    fail(first,
         "Not all in it can be removed, so the record of its lab is kept: mend that, and say `holdfast lab stop " +
             shell_word(place.directory) + "` again.",
         why.message());
}

void remove_all(const lab_place& place, const lab_record& lab) {
  remove_nodes(place, lab);
  for (const auto& file : {place.fresh_record_file(), place.record_file(), place.lock_file()}) ::unlink(file.c_str());
  if (lab.made_directory) ::rmdir(place.directory.c_str());
}

}  // namespace holdfast::local
