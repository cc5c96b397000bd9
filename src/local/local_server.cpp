// SPDX-License-Identifier: Apache-2.0
// Find, start, stop: the order of steps under the directory's file lock.
#include "local/local_server.hpp"

#include "base/time.hpp"
#include "local/adopt.hpp"
#include "local/as_server_user.hpp"
#include "local/clock.hpp"
#include "local/directory.hpp"
#include "local/directory_lock.hpp"
#include "local/failure.hpp"
#include "local/launch.hpp"
#include "local/probe.hpp"
#include "local/process.hpp"
#include "local/server_lock.hpp"
#include "local/shell_word.hpp"
#include "local/starts.hpp"
#include "local/whole_file.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

// A start takes some 10 ms, and on a machine that is busy that often: whoever has less time gives it so long.
constexpr duration shortest_start = 1s;

// How long a server that accepts may take to answer PING before we say so; and once more, when nobody starts it.
constexpr auto silence = 5s;
constexpr auto silence_again = 1s;

// Of who has little time, both silences together.
duration first_of(duration within) { return std::min<duration>(silence, within * 5 / 6); }
duration second_of(duration within) { return std::min<duration>(silence_again, within / 6); }

local_status status_of(const place& where, const answer& seen) {
  local_status status;
  status.directory = where.directory;
  status.socket = where.socket();
  status.running = seen.what == presence::running || seen.what == presence::loading || seen.what == presence::busy ||
                   seen.what == presence::crowded;
  status.pid = status.running ? seen.pid : 0;
  return status;
}

// Of one that hears nothing else. Who listens may be a stranger, to whom a link leads: that one is not killed on our
// word. Of one in another container there is no number, and no way out that we know.
std::string way_to_end(const place& where, int pid) {
  if (pid == 0) return "";
  const auto number = std::to_string(pid);
  return works_in(pid, where.directory) ? "; `kill -9 " + number + "` ends it"
                                        : "; `ps -fp " + number + "` says what that is";
}

[[noreturn]] void fail_unusable(const place& where, const answer& seen) {
  const auto pid = seen.pid != 0 ? " (process " + std::to_string(seen.pid) + ")" : std::string{};
  const auto server = "The server there" + pid;
  switch (seen.what) {
    case presence::silent:
      fail(where.socket(), server + " accepts connections and does not answer" + way_to_end(where, seen.pid) + ".");
    case presence::loading:
      fail(where.socket(), server + " still reads its file, which takes long if that is large; try again.", seen.words);
    case presence::busy:
      fail(where.socket(),
           server + " is busy with a script: `redis-cli -s " + shell_word(where.socket()) +
               " SCRIPT KILL`, or `holdfast local stop " + shell_word(where.directory) + "`.",
           seen.words);
    case presence::crowded:
      fail(where.socket(),
           server + " has as many clients as it takes: end some, or `holdfast local stop " +
               shell_word(where.directory) + "`.",
           seen.words);
    case presence::forbidden:
      fail(where.socket(),
           std::string{"It may not be asked: look at the mode of its directory, which must be "} +
               (where.shared ? "2770, and at that of the socket." : "0700."),
           seen.words);
    default:
      fail(where.socket(), "What listens there" + pid + " is not the local server" + way_to_end(where, seen.pid) + ".",
           seen.words);
  }
}

bool is_passing(presence what) {
  return what == presence::loading || what == presence::busy || what == presence::crowded;
}

// An ordinary file where the socket will be, which refuses all who connect, whatever our umask. redis-server removes it
// to bind its own: a server that has ended with this still there has served nobody. Only while no server can be: what
// it takes the place of must be nobody's socket.
void put_placeholder(const place& where) {
  write_whole_file(where.socket(), "", where.file_mode(), "Its socket cannot be made.");
}

bool take_placeholder(const place& where) {
  const auto no_server = server_lock::try_take(where.directory);
  return no_server && is_placeholder(where.socket()) && ::unlink(where.socket().c_str()) == 0;
}

// nullopt if another server was quicker. Between the lock's release and the server's taking it for itself another may
// take it; then ours is not run.
std::optional<int> launch_recorded(const recorded_start& start, const std::string& program, const place& where,
                                   std::optional<server_lock> no_server) {
  try {
    if (where.shared) open_to_group(where);
    put_placeholder(where);
    no_server.reset();
    return launch(program, where);
  } catch (const directory_taken&) {  // The placeholder is the other's now.
    start.take_back();
    return std::nullopt;
  } catch (const may_be_run&) {  // Then the placeholder and the line are its own.
    throw;
  } catch (...) {  // It was not run.
    no_server.reset();
    take_placeholder(where);
    start.take_back();
    throw;
  }
}

// What it said when it was started; what a former one said is before that in the same file.
[[noreturn]] void fail_with_log(const place& where, std::size_t before, std::string why) {
  auto last = last_line(where.log_file(), before);
  why += last.empty() ? " It wrote nothing into its log." : " Its log says more.";
  fail(where.log_file(), std::move(why), std::move(last));
}

std::optional<local_status> launch_and_wait(const place& where, server_lock no_server, time_point give_up_at) {
  const auto program = find_server();  // First: a start that cannot be is not recorded as one.
  check_that_processes_can_be_watched();
  if (where.shared) adopt_files(where);
  const recorded_start start{where};
  const auto before = length_of(where.log_file());
  const auto pid = launch_recorded(start, program, where, std::move(no_server));
  if (!pid) return std::nullopt;
  const process_handle server{*pid};
  for (;;) {
    const auto seen = ping(where.socket(), give_up_at);
    if (seen.what == presence::running) {
      auto status = status_of(where, seen);
      status.was_started = true;
      return status;
    }
    if (seen.what == presence::foreign || seen.what == presence::forbidden) fail_unusable(where, seen);
    if (server.ended_within(1ms)) {
      if (take_placeholder(where)) start.take_back();
      fail_with_log(where, before, "redis-server ended as soon as it was started.");
    }
    if (boottime_now() >= give_up_at) {
      if (is_passing(seen.what)) fail_unusable(where, seen);
      fail_with_log(where, before,
                    "redis-server (process " + std::to_string(*pid) + ") was started and does not answer; `kill -9 " +
                        std::to_string(*pid) + "` ends it.");
    }
  }
}

// A server that reads its file answers LOADING; it will run in a moment. So it may be with the others.
answer ping_until_free(const place& where, time_point give_up_at) {
  auto seen = ping(where.socket(), give_up_at);
  while (is_passing(seen.what) && boottime_now() < give_up_at) {
    pause_for(5ms);
    auto next = ping(where.socket(), give_up_at);
    if (next.what == presence::silent) break;  // There was no time left for the answer.
    seen = std::move(next);
  }
  return seen;
}

struct found {
  answer seen;
  std::optional<server_lock> no_server;  // Nobody listens, and no server is: not one that is about to, either.
};

// Of one whose starter has ended nothing shows but the lock, until it listens.
template <class Ask>
found look_for_server(const place& where, Ask ask, time_point give_up_at) {
  for (;;) {
    found now{ask(), std::nullopt};
    if (now.seen.what != presence::absent && now.seen.what != presence::refusing) return now;
    now.no_server = server_lock::try_take(where.directory);
    if (now.no_server) return now;
    if (boottime_now() >= give_up_at) {
      fail(where.directory,
           "A server of it runs that does not listen at its socket, which somebody may have removed: `pkill -f " +
               pattern_for_pkill(where.socket()) + "` ends it. Or another program has locked the directory.");
    }
    pause_for(5ms);
  }
}

// Who has too many clients hears no other, but a signal: the same end. It must be meant for nobody else.
void tell_to_end(const place& where, const process_handle& server, time_point give_up_at) {
  const auto told = shut_down(where.socket(), give_up_at);
  if (told.what == presence::foreign)
    fail(where.socket(), "The server refuses to end" + way_to_end(where, told.pid) + ".", told.words);
  if (told.what != presence::crowded) return;
  if (!works_in(told.pid, where.directory)) fail_unusable(where, told);
  server.signal(SIGTERM);
}

// Of a server that hangs, each of a crowd asks again in turn, and nobody starts it: what was `seen` of it is what the
// last of them has to say, too.
directory_lock lock_to_start(const place& where, const answer* seen, time_point give_up_at) {
  try {
    return directory_lock{where.lock_file(), where.file_mode(), give_up_at};
  } catch (const error&) {
    if (seen && boottime_now() >= give_up_at) fail_unusable(where, *seen);
    throw;
  }
}

bool is_left_by_server(const place& where, time_point give_up_at) {
  while (!server_lock::try_take(where.directory)) {
    if (boottime_now() >= give_up_at) return false;
    pause_for(1ms);
  }
  return true;
}

}  // namespace

local_status start(std::string_view directory, duration within) {
  const auto give_up_at = boottime_now() + std::clamp<duration>(within, shortest_start, start_patience);
  const auto where = find_or_make(directory);
  const as_server_user for_all_of_it{where};  // A socket may be a link to that of another server.
  const auto before = ping_until_free(where, boottime_now() + first_of(within));
  if (before.what == presence::running) return status_of(where, before);
  if (before.what == presence::foreign || before.what == presence::forbidden) fail_unusable(where, before);
  const bool is_known =
      before.what == presence::silent || before.what == presence::busy || before.what == presence::crowded;
  const auto lock = lock_to_start(where, is_known ? &before : nullptr, give_up_at);
  // Somebody may have started it while we waited for the lock. One that was silent may have been at that, too: it
  // listens before it has written its first file, and a busy disk takes seconds; who starts it has the lock until it
  // answers.
  const auto ask = [&] {
    return ping_until_free(where, boottime_now() + (is_known ? second_of(within) : first_of(within)));
  };
  for (;;) {
    auto now = look_for_server(where, ask, give_up_at);
    if (now.seen.what == presence::running) return status_of(where, now.seen);
    if (!now.no_server) fail_unusable(where, now.seen);
    if (auto started = launch_and_wait(where, std::move(*now.no_server), give_up_at)) return *started;
  }
}

local_status stop(std::string_view directory) {
  const auto where = find(directory);
  if (!where.exists) return status_of(where, {});
  const auto give_up_at = boottime_now() + start_patience;
  const as_server_user for_all_of_it{where};  // As in start().
  const directory_lock lock{where.lock_file(), where.file_mode(), give_up_at};
  const auto ask = [&] { return ping(where.socket(), boottime_now() + silence); };
  const auto [seen, no_server] = look_for_server(where, ask, give_up_at);
  switch (seen.what) {
    case presence::absent: return status_of(where, seen);
    case presence::silent:
    case presence::forbidden:
    case presence::foreign: fail_unusable(where, seen);
    case presence::refusing:
    case presence::running:
    case presence::busy:
    case presence::crowded:
    case presence::loading: keep_record(where); break;
  }
  if (seen.what == presence::refusing) {
    ::unlink(where.socket().c_str());
    return status_of(where, seen);
  }
  const auto server = seen.pid == 0 ? process_handle::none() : process_handle{seen.pid};
  tell_to_end(where, server, give_up_at);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime_now());
  // Of one in another container there is no number, but its lock.
  if (!server.ended_within(std::max(left, 0ms)) || (seen.pid == 0 && !is_left_by_server(where, give_up_at))) {
    fail(where.socket(), "The server was told to end and did not" + way_to_end(where, seen.pid) + ".");
  }
  auto status = status_of(where, {});
  status.was_stopped = true;
  return status;
}

local_status query(std::string_view directory) {
  const auto where = find(directory);
  if (!where.exists) return status_of(where, {});
  const as_server_user for_all_of_it{where};
  const auto ask = [&] { return ping(where.socket(), boottime_now() + silence); };
  const auto seen = look_for_server(where, ask, boottime_now() + 1s).seen;
  if (seen.what == presence::silent || seen.what == presence::forbidden || seen.what == presence::foreign)
    fail_unusable(where, seen);
  return status_of(where, seen);
}

}  // namespace holdfast::local

namespace holdfast {
inline namespace v0 {

local_status start_local(std::string_view directory) { return local::start(directory); }
local_status stop_local(std::string_view directory) { return local::stop(directory); }
local_status query_local(std::string_view directory) { return local::query(directory); }

}  // namespace v0
}  // namespace holdfast
