// SPDX-License-Identifier: Apache-2.0
// holdfast local: the private server of this user on this machine. Nobody has to start it; this is for looking at it,
// for stopping it, and for those who want it up before the first lock.
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "subcommands.hpp"

#include <holdfast/local.hpp>

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

std::string shown(const local_status& status) {
  if (status.was_stopped) return fmt::format("stopped; its directory is {}\n", visible_path(status.directory));
  if (!status.running) return fmt::format("not running; its directory is {}\n", visible_path(status.directory));
  return fmt::format("{}, pid {}, socket {}\n", status.was_started ? "started" : "running", status.pid,
                     visible_path(status.socket));
}

}  // namespace

int local_command(const settings& s) {
  if (s.words.empty() || s.words.size() > 2)
    throw usage_error{"local is one of: start, stop, status", "holdfast local status"};
  // No directory is the user's own server: an empty one would stop that in its place.
  if (s.words.size() == 2 && s.words.back().empty())
    throw usage_error{
        fmt::format("local {}: the directory is empty; was a variable not set?", visible(s.words.front())),
        "holdfast local status DIR, or no directory at all"};
  const auto& what = s.words.front();
  const std::string directory = s.words.size() == 2 ? s.words.back() : "";
  local_status status;
  if (what == "start")
    status = start_local(directory);
  else if (what == "stop")
    status = stop_local(directory);
  else if (what == "status")
    status = query_local(directory);
  else
    throw usage_error{fmt::format("local has no '{}'", visible_word(what)), "start, stop or status"};
  if (what == "status") {
    if (s.json || !s.quiet) print(s.json ? json_of(status) : shown(status));
    return number(status.running ? exit_code::ok : exit_code::unavailable);
  }
  // A script goes on with the document.
  if (s.json) return number(print_done(json_of(status)) ? exit_code::ok : exit_code::defect);
  if (!s.quiet) print_done(shown(status));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
