// SPDX-License-Identifier: Apache-2.0
// From settings to a client: which server, which password, and the one line that says when nobody named a server.
#pragma once

#include "options.hpp"

#include <holdfast/client.hpp>

#include <string>
#include <string_view>

namespace holdfast::cli {

struct server {
  client locks;
  std::string prefix;  // What keys begin with.
  naming how;
};

// Makes the client; without a server named it is local:, and stderr says so. Throws error and usage_error.
server open_server(const settings& s);

// --uri or HOLDFAST_URI; empty: neither. Warns of a password that everybody can read.
std::string_view named_server(const settings& s);
// What a client is told beside its server.
client_options options_of(const settings& s);

}  // namespace holdfast::cli
