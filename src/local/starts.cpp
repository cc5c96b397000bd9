// SPDX-License-Identifier: Apache-2.0
#include "local/starts.hpp"

#include "local/failure.hpp"
#include "local/plain_file.hpp"
#include "local/process.hpp"
#include "local/whole_file.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <sstream>

namespace holdfast::local {
namespace {

std::string line_of(const std::string& words) {
  const auto boot = kernel_boot_id();
  return (boot.empty() ? "" : boot + " ") + words + "\n";
}

bool is_of_another_boot(const std::string& line, const std::string& boot) {
  return !boot.empty() && line.find(' ') == boot.size() && !line.starts_with(boot);
}

// nullopt if there is none.
std::optional<std::string> read_record(const place& where) {
  const auto path = where.starts_file();
  const auto file = open_plain(path, O_RDONLY);
  if (!file.is_open() && errno == ENOENT) return std::nullopt;
  auto text = file.is_open() ? rest_of(file) : std::nullopt;
  if (!text) fail_with_errno(path, "The record of its starts cannot be read.", errno);
  return text;
}

// A record that is missing where a server has been was deleted: files that are not touched for a month are, in
// /var/tmp.
bool has_been_used(const place& where) {
  struct stat seen {};
  for (const auto& left : {where.socket(), where.log_file(), where.append_only_directory()})
    if (::lstat(left.c_str(), &seen) == 0) return true;
  return false;
}

void write_record(const place& where, const std::string& text) {
  write_whole_file(where.starts_file(), text, where.file_mode(), "The record of its starts cannot be written.");
}

std::string record_so_far(const place& where) {
  if (auto text = read_record(where)) return *text;
  return has_been_used(where) ? line_of("started before this record was lost") : "";
}

}  // namespace

recorded_start::recorded_start(const place& where) : where_{where}, before_{record_so_far(where)} {
  write_record(where, before_ + line_of("started by process " + std::to_string(::getpid())));
}

// Not by removing the file, though there may have been none: it would seem to be lost, beside the log of this start.
void recorded_start::take_back() const {
  try {
    write_record(where_, before_);
  } catch (const error&) {
  }
}

void keep_record(const place& where) {
  if (!read_record(where)) write_record(where, record_so_far(where));
}

bool is_first_run(const std::string& directory) {
  const auto boot = kernel_boot_id();
  std::istringstream record{text_or_nothing(place{directory}.starts_file())};
  int starts = 0;
  for (std::string line; std::getline(record, line);)
    if (!is_of_another_boot(line, boot)) ++starts;
  return starts == 1;
}

}  // namespace holdfast::local
