// SPDX-License-Identifier: Apache-2.0
// A directory that we hold on to, for taking files over where any member of a group can exchange one for a link: what
// is done in it is done there, whatever its name has come to mean, and no link in it is followed.
#pragma once

#include "local/descriptor.hpp"
#include "local/directory.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::local {

// All but remove() throw error with errc::local_server where it cannot be done. Names have one part.
class opened_directory {
public:
  explicit opened_directory(const place& where);
  opened_directory directory(const std::string& name) const;

  std::string path_of(std::string_view name) const;
  uid_t owner() const;

  // Nothing is followed. nullopt: nothing is there. In the next moment there may be something else.
  std::optional<struct stat> look_at(const std::string& name) const;
  std::vector<std::string> names() const;

  // For reading, if it is a plain file.
  descriptor file(const std::string& name) const;
  // Both new; `user` is who we act as.
  descriptor make_file(const std::string& name) const;
  opened_directory make_directory(const std::string& name, uid_t user) const;

  // A directory that only its owner may empty is in the next one's way. This one is `user`'s, who we act as; whatever
  // our umask.
  void open_to_members(uid_t user) const;
  bool is_open_to_members() const;

  void rename(const std::string& from, const std::string& to) const;

  // As far as we may: a link itself, and of a directory the files in it; a server makes none below that.
  void remove(const std::string& name) const;

private:
  opened_directory(int in, const std::string& name, std::string path);

  std::string path_;
  descriptor fd_;
};

[[noreturn]] void fail_to_adopt(const std::string& path, int error_number);

}  // namespace holdfast::local
