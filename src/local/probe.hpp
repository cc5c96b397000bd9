// SPDX-License-Identifier: Apache-2.0
// One question to whatever listens on a Unix socket. By hand and blocking: it is one PING, asked before there is an
// engine; who wants replies with more in them has ask.hpp.
#pragma once

#include "base/time.hpp"

#include <string>

namespace holdfast::local {

enum class presence {
  absent,     // No socket there.
  refusing,   // A socket file that nobody listens on: its server died.
  silent,     // Somebody accepts and does not answer, or is too busy to accept.
  loading,    // A Redis that reads its file.
  busy,       // One that a script keeps from all else.
  crowded,    // One that has as many clients as it takes.
  running,    // +PONG; or -MISCONF, while its disk is full: what it holds it still holds.
  forbidden,  // The modes of the directory or of the socket do not let us ask.
  foreign,    // It answers, but not like a Redis of ours; `words` says what.
};

struct answer {
  presence what = presence::absent;
  int pid = 0;        // Of the process that listens; 0 if it cannot be told.
  std::string words;  // The answer, or the system's words.
};

// A plain file, which refuses whoever may connect, whatever its mode: the place of a socket that is kept for a server
// (local_server.cpp).
bool is_placeholder(const std::string& socket_path);

// Throws error with errc::local_server if we cannot even ask.
answer ping(const std::string& socket_path, time_point give_up_at);

// Sends SHUTDOWN. The answer is `refusing` when the server closed the connection, as it should, `crowded` when it did
// not hear it, and `foreign` when it refuses.
answer shut_down(const std::string& socket_path, time_point give_up_at);

}  // namespace holdfast::local
