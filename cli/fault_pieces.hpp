// SPDX-License-Identifier: Apache-2.0
// What the texts of faults are made of; for the files that begin with fault.
#pragma once

#include "message.hpp"

#include <holdfast/error.hpp>

#include <string>

namespace holdfast::cli {

// The pieces of one error, escaped, with stand-ins for what is missing.
struct pieces {
  pieces(const error& e, const fault_context& context);

  std::string server, subject, bare_subject, words, why, lock, lock_argument, server_argument, meant_lock_argument,
      init_argument;
  std::string reached;  // The server that was asked: of a cluster the node, where it is known.
  std::string colon_words{}, tried{}, remains{};
  bool is_named_by_option;  // The server, by --uri.
};

struct sentences {
  std::string text;
  std::string why;
  std::string fix;
};

// Where there are no descriptors left.
inline constexpr const char* way_to_descriptors =
    "raise the limit: ulimit -n 64 or more, LimitNOFILE= of a systemd unit; of the machine: sysctl fs.file-max";

// Which names another server; no variable changes what the command line says.
const char* way_to_another_server(const pieces& p);

// Somebody's whole file for a name would hide the sentence around it.
std::string shortened(std::string text);

// A server that cannot be reached. Empty for other causes.
sentences for_connection(errc cause, const pieces& p, const fault_context& context);

// A server that was named by no URI that we understand.
sentences for_uri(const pieces& p, const fault_context& context);

// A server of ours (local:, lab) that cannot be started or used.
sentences for_local(const pieces& p, const fault_context& context);

// An option that cannot be had: alone, or together with what else was asked for.
sentences for_option(const pieces& p, const fault_context& context);

// A server that is there and grants nothing, or not now. Empty for other causes.
sentences for_trouble(errc cause, const pieces& p, const fault_context& context);

}  // namespace holdfast::cli
