// SPDX-License-Identifier: Apache-2.0
#include "not_started.hpp"

#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace holdfast::cli {
namespace {

constexpr const char* way_to_path = "its whole path; cron and systemd have a short PATH";

bool is_file(const std::string& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 && S_ISREG(seen.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode);
}

// What exec meant, the first that `is` what is looked for; empty: there is none.
std::string found(const std::string& program, bool (*is)(const std::string&)) {
  if (program.find('/') != program.npos) return is(program) ? program : "";
  const auto path = variable_if_set("PATH").value_or("/bin:/usr/bin");  // What exec takes without one.
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    // Empty, it is the directory that we are in.
    auto file = end == begin ? program : fmt::format("{}/{}", path.substr(begin, end - begin), program);
    if (is(file)) return file;
    begin = end + 1;
  }
  return "";
}

// What the first line names; empty: it is no script.
std::string interpreter_of(const std::string& file) {
  std::string line(256, '\0');
  std::ifstream in{file, std::ios::binary};
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(in.gcount()));
  if (!line.starts_with("#!")) return "";
  const auto begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  return line.substr(begin, line.find_first_of(" \t\n", begin) - begin);
}

void explain_missing(fault& what, const std::string& program) {
  const auto file = found(program, is_file);
  const bool has_directory = program.find('/') != program.npos;
  if (program.empty()) {
    what.why = "the command is an empty word";
    what.fix = "was a variable not set?";
  } else if (!file.empty()) {
    const auto interpreter = interpreter_of(file);
    what.why = interpreter.empty()
                   ? std::string{"the file is there; the loader or the library that it was linked for is not"}
                   : fmt::format("the script is there; the interpreter '{}' that its first line names is not",
                                 visible(interpreter));
    what.fix = interpreter.ends_with('\r') ? "the line ends with a carriage return: dos2unix FILE"
               : interpreter.empty()       ? "a program for this system"
                                           : "install it, or correct the first line";
  } else if (has_directory) {
    what.why = "there is no such file";
    what.fix = program[0] == '/' ? "check the path" : "check the path: it counts from where holdfast was started";
  } else {
    what.why = "no directory of PATH has it";
    what.fix = way_to_path;
  }
}

void explain_forbidden(fault& what, const std::string& program) {
  const bool has_file = !found(program, is_file).empty();
  const bool has_directory = !has_file && !found(program, is_directory).empty();
  if (program.find('/') == program.npos && !has_file && !has_directory) {
    // One directory that may not be searched, and exec says this of all of them.
    what.why = "no directory of PATH that this user may search has it";
    what.fix = way_to_path;
    return;
  }
  what.why = has_directory ? "it is a directory" : "this user may not execute it";
  what.fix = has_directory ? "name a program" : "chmod +x FILE, or name its interpreter: sh FILE";
}

}  // namespace

fault why_not_started(const settings& s, const std::string& program, int failure) {
  fault what{.text = fmt::format("cannot run '{}': {}", visible_word(program), std::strerror(failure))};
  what.exit = failure == ENOENT ? exit_code::not_found : exit_code::not_executable;
  // The lock's name was forgotten, most likely.
  if (!s.shell_command && (program.starts_with('-') || s.is_name_behind_dashes)) {
    what.why = fmt::format("'{}' was taken for the lock's name, and '{}' for the command", visible_word(s.name),
                           visible_word(program));
    what.fix = fmt::format("holdfast run{} NAME -- {} ..", server_argument(s), shell_quoted(visible_word(s.name)));
    return what;
  }
  switch (failure) {
    case ENOENT: explain_missing(what, program); break;
    case EACCES: explain_forbidden(what, program); break;
    case E2BIG:
      what.why = "its arguments and its environment are too long";
      what.fix = "fewer arguments, or a file of them";
      break;
    case ENOEXEC:
      what.why = "it is no program of this machine";
      what.fix = "a program for this machine; a script begins with #!";
      break;
    default:
      what.why = "the system refuses to execute it";
      what.fix = "run it without holdfast: what keeps it from that, keeps it from this";
  }
  return what;
}

}  // namespace holdfast::cli
