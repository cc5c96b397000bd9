// SPDX-License-Identifier: Apache-2.0
// The record of a local server's starts: a line for each, by which its first run is told from one that may have
// forgotten locks. Its own file, because exclusion after a restart rests on it (docs/decisions/0012-quarantine.md and
// 0027-a-boot-is-new.md).
//
//   BOOT started ...    counts while that boot lasts: when it has ended, so has every process that held a lock
//   anything else       counts for ever: BOOT could not be told, or an older version wrote it
#pragma once

#include "local/directory.hpp"

#include <string>

namespace holdfast::local {

// The line of a start, written before there is a server, so that no server is without one. Whoever makes it holds the
// directory's lock as long as it lives.
class recorded_start {
public:
  explicit recorded_start(const place& where);

  // Only for a server of which it is certain that it has served nobody. Should this fail, the line stays.
  void take_back() const;

private:
  place where_;
  std::string before_;
};

// Before a server ends and takes its socket along, perhaps the last that tells of it. Under the directory's lock.
void keep_record(const place& where);

// Is the server of this directory, to which a connection stands already, the first of this boot? Then it cannot have
// forgotten a lock whose holder lives. The order matters: whoever starts another one writes its line before. False
// where that cannot be told; never waits and never throws an error.
bool is_first_run(const std::string& directory);

}  // namespace holdfast::local
