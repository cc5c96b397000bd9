// SPDX-License-Identifier: Apache-2.0
#include "local/adopt.hpp"

#include "local/descriptor.hpp"
#include "local/opened_directory.hpp"
#include "local/plain_file.hpp"

#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::local {
namespace {

constexpr std::string_view gone_suffix = ".gone.";

// The names in the shared directory.
constexpr const char* directory_name = "appendonlydir";
constexpr const char* fresh_directory_name = "appendonlydir.new";
constexpr const char* former_directory_name = "appendonlydir.old";
constexpr const char* file_name = "appendonly.aof";  // Of Redis 6.2.
constexpr const char* fresh_file_name = "appendonly.aof.new";

void copy(const opened_directory& from, const std::string& name, const opened_directory& to,
          const std::string& to_name) {
  const auto in = from.file(name);
  struct stat seen {};
  if (::fstat(in.get(), &seen) != 0) fail_to_adopt(from.path_of(name), errno);
  const auto out = to.make_file(to_name);
  for (off_t left = seen.st_size; left > 0;) {
    const auto sent = ::sendfile(out.get(), in.get(), nullptr, static_cast<std::size_t>(left));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail_to_adopt(to.path_of(to_name), sent < 0 ? errno : EIO);
    left -= sent;
  }
}

// Another member's directory with something in it can only be emptied by whom it belongs to; its name any member can
// take from it, for the next one of that name.
void discard(const opened_directory& in, const std::string& name) {
  if (!in.look_at(name)) return;
  std::string gone;
  for (int i = 0; gone.empty() || in.look_at(gone); ++i) gone = fmt::format("{}{}{}", name, gone_suffix, i);
  in.rename(name, gone);
  in.remove(gone);
}

// By discard(): one of its three names, and a number.
bool is_discarded(std::string_view name) {
  for (const std::string_view whole : {fresh_directory_name, former_directory_name, fresh_file_name}) {
    if (!name.starts_with(whole) || !name.substr(whole.size()).starts_with(gone_suffix)) continue;
    const auto number = name.substr(whole.size() + gone_suffix.size());
    return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return false;
}

// What others could not remove may be ours.
void remove_discarded(const opened_directory& in) {
  for (const auto& name : in.names())
    if (is_discarded(name)) in.remove(name);
}

// Nothing is left of what could not be made.
template <class Make>
void make_or_discard(const opened_directory& in, const std::string& made, Make make) {
  discard(in, made);
  try {
    make();
  } catch (...) {
    in.remove(made);
    throw;
  }
}

// The server can append to it, and the next member copy it. What a directory had before it was given to a group is its
// owner's, with another group or none.
bool is_as_it_should_be(const struct stat& file, const place& where) {
  return file.st_uid == where.server_user() && file.st_gid == where.group && (file.st_mode & S_IRGRP) != 0;
}

// Redis 6.2 has one file.
void adopt_file(const opened_directory& in, const place& where) {
  const auto seen = in.look_at(file_name);
  if (!seen) return;
  if (!is_plain(*seen)) refuse_as_not_plain(in.path_of(file_name));
  if (is_as_it_should_be(*seen, where)) return;
  make_or_discard(in, fresh_file_name, [&] {
    copy(in, file_name, in, fresh_file_name);
    in.rename(fresh_file_name, file_name);
  });
}

bool is_all_as_it_should_be(const opened_directory& directory, const place& where) {
  bool is_all = directory.owner() == where.server_user();
  for (const auto& name : directory.names()) {
    const auto file = directory.look_at(name);
    if (!file) fail_to_adopt(directory.path_of(name), ENOENT);
    if (!is_plain(*file)) refuse_as_not_plain(directory.path_of(name));
    is_all = is_all && is_as_it_should_be(*file, where);
  }
  return is_all;
}

// Redis 7 has a directory of them.
void adopt_directory(const opened_directory& in, const place& where) {
  if (!in.look_at(directory_name)) {
    // Whoever put the copy there was ended between the two steps of that.
    if (!in.look_at(former_directory_name)) return;
    in.rename(former_directory_name, directory_name);
  }
  const auto directory = in.directory(directory_name);
  if (is_all_as_it_should_be(directory, where)) return;
  discard(in, former_directory_name);
  make_or_discard(in, fresh_directory_name, [&] {
    const auto made = in.make_directory(fresh_directory_name, where.server_user());
    for (const auto& name : directory.names()) copy(directory, name, made, name);
    in.rename(directory_name, former_directory_name);
    in.rename(fresh_directory_name, directory_name);
  });
  discard(in, former_directory_name);
}

}  // namespace

void adopt_files(const place& where) {
  const opened_directory in{where};
  remove_discarded(in);
  adopt_directory(in, where);
  adopt_file(in, where);
}

// Also what a server has made itself, with a mode of 2750. A new one has its mode before its name: whoever is ended in
// between leaves nothing that others may not look into.
void open_to_group(const place& where) {
  const opened_directory in{where};
  if (!in.look_at(directory_name)) {
    make_or_discard(in, fresh_directory_name, [&] {
      in.make_directory(fresh_directory_name, where.server_user());
      in.rename(fresh_directory_name, directory_name);
    });
  } else if (const auto made = in.directory(directory_name); !made.is_open_to_members()) {
    made.open_to_members(where.server_user());
  }
}

}  // namespace holdfast::local
