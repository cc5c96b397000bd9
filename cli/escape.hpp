// SPDX-License-Identifier: Apache-2.0
// Foreign text made safe to show. Lock names, owner labels and the server's words come from other machines; a
// terminal obeys some bytes, and a log reader believes line breaks.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// The same text, with control characters (C0, DEL, C1), line and paragraph separators, direction overrides and
// bytes that are not UTF-8 written as \xNN. What is printable stays as it is.
std::string visible(std::string_view text);

// The same JSON document: as visible(), but what JSON lets stand in its texts is written as \uNNNN there.
std::string visible_json(std::string_view document);

// A word of a command line, for a message: of a URI, which may be meant for --uri, without user and password. A lock's
// name is one, too, wherever it is not what was asked for.
std::string visible_word(std::string_view word);

// The same for a path: of "redis://:secret@db1" the library has made "/tmp/redis:/:secret@db1".
std::string visible_path(std::string_view path);

// `text` quoted for a POSIX shell where it needs to be, for commands that we print to be copied.
std::string shell_quoted(std::string_view text);

// A lock's name as the words of a command line: behind `--` where it would be read as an option. The word NAME for one
// that nobody could copy, or that is not shown.
std::string name_argument(std::string_view name);

// The files that a server wants of us, as options name them. Empty: not given. Views must outlive the call.
struct server_files {
  std::string_view password{};  // --password-file
  std::string_view cacert{};
  std::string_view cert{};
  std::string_view key{};
};

// What names a server, and the locks there, on a command line. Views must outlive the call.
struct server_words {
  std::string_view uri{};     // --uri; empty: not given.
  std::string_view prefix{};  // --prefix; empty: not given.
  server_files files{};
  std::string max_ttl{};  // --max-ttl, for `holdfast init`; empty: not given, or of no matter.
};

// These options, each behind a space, for commands that we print to be copied: without them another server would be
// asked or changed, or other locks, or it would not let us in. A URI that has user or password, or may have, is the
// word URI there, and a file that is there for this process alone, as <(pass show db1) is, the word FILE.
std::string server_argument(const server_words& which);

// What names a lock on a command line. Views must outlive the call.
struct lock_words {
  std::string_view name;
  server_words at{};
  bool plain = false;  // --plain.
};

// A lock as the words of a command line, for commands that we print to be copied: without its --plain, --uri or
// --prefix the name would mean another key.
std::string lock_argument(const lock_words& which);

}  // namespace holdfast::cli
