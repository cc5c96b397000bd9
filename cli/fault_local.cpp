// SPDX-License-Identifier: Apache-2.0
// The texts for a server of ours that cannot be started, used or ended: local:, and those of a lab.
#include "fault_pieces.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {
namespace {

// These say what is wrong with it and no more.
bool is_about_directory(std::string_view why) {
  for (const auto* one :
       {"It is not a directory.", "It cannot be made.", "It cannot be opened.", "It cannot be examined."})
    if (why == one) return true;
  return why.starts_with("It is not empty") || why.starts_with("It belongs to user") ||
         why.starts_with("It is shared with group");
}

std::string without(std::string_view part, std::string why) {
  if (const auto at = why.find(part); at != why.npos) why.erase(at, part.size());
  return why;
}

// The variable is read where no directory was named.
std::string without_variable(std::string why, const fault_context& context) {
  if (!context.names_directory) return why;
  return without(" with HOLDFAST_LOCAL_DIR", without(" (HOLDFAST_LOCAL_DIR)", std::move(why)));
}

constexpr auto another_directory = "another directory: one that is not there yet is made";

// Of `local stop` and `local status`, which look for a server: a new directory has none.
std::string way_to_server_in(std::string_view why) {
  if (why.starts_with("It belongs to user")) return "as that user; or the directory that your server was started with";
  if (why.starts_with("It is shared with group"))
    return "as a member of that group; or the directory that your server was started with";
  return "the directory that the server was started with";
}

// Of two ways out, each of which may be none.
std::string either(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : "; or ") + other;
}

sentences for_lab(const pieces& p, const fault_context& context) {
  if (p.subject == "redis-server" && p.words.empty())
    return {"the lab cannot be started: redis-server is not installed", "PATH, /usr/bin and /usr/sbin have none",
            "apt-get install redis-server"};
  const bool is_end = context.local_word == "stop";
  // It was mistyped, or is gone already.
  if (p.why.starts_with("Nothing is there") || p.why.starts_with("It is not the directory of a lab") ||
      (is_end && p.why == "It is not a directory."))
    return {fmt::format("no lab in {}", p.subject), p.why,
            "the directory that `holdfast lab` said when it began: holdfast-lab-* in TMPDIR or /tmp, "
            "unless --directory named one"};
  const auto failed = fmt::format("the lab failed: {}{}", p.subject, p.colon_words);
  if (is_end && p.why.starts_with("It belongs to user")) return {failed, p.why, "end it as that user"};
  if (p.why.starts_with("It was not ready in time"))
    return {failed, without("; --ready-within (lab_options::ready_within) gives it more", p.why),
            "--ready-within 1m, say"};
  return {failed, p.why, is_about_directory(p.why) && !is_end ? another_directory : ""};  // Else `why` has the way out.
}

}  // namespace

// The library's `why` has the way out where there is one; ours is the package's name, and the other way to get a
// server.
sentences for_local(const pieces& p, const fault_context& context) {
  if (p.server == "lab") return for_lab(p, context);
  const auto elsewhere =
      context.local_word.empty() ? fmt::format("name a server: {}", way_to_another_server(p)) : std::string{};
  if (p.subject == "redis-server" && p.words.empty())
    return {"the local: server cannot be started: redis-server is not installed",
            "PATH, /usr/bin and /usr/sbin have none", either("apt-get install redis-server", elsewhere)};
  const bool is_looked_for = context.local_word == "stop" || context.local_word == "status";
  const auto way_out = !is_about_directory(p.why) ? ""  // `why` has it, or there is none.
                       : is_looked_for            ? way_to_server_in(p.why)
                                                  : another_directory;
  return {fmt::format("the local: server cannot be used: {}{}", p.subject, p.colon_words),
          without_variable(p.why, context), either(way_out, elsewhere)};
}

}  // namespace holdfast::cli
