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
  if (!status.running) return fmt::format("not running; its directory is {}\n", visible(status.directory));
  return fmt::format("{}, pid {}, socket {}\n", status.was_started ? "started" : "running", status.pid,
                     visible(status.socket));
}

}  // namespace

int local_command(const settings& s) {
  if (s.words.empty() || s.words.size() > 2)
    throw usage_error{"local is one of: start, stop, status", "holdfast local status"};
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
    throw usage_error{fmt::format("local has no '{}'", visible(what)), "start, stop or status"};
  if (s.json)
    print(json_of(status));
  else if (!s.quiet)
    print(shown(status));
  return number(what == "status" && !status.running ? exit_code::unavailable : exit_code::ok);
}

}  // namespace holdfast::cli
