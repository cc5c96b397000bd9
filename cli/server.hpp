// SPDX-License-Identifier: Apache-2.0
// From settings to a client: which server, which password, and the one line that says when nobody named a server.
#pragma once

#include "options.hpp"
#include "renewal_news.hpp"

#include <holdfast/client.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct server {
  client locks;
  std::string prefix;  // What keys begin with.
  naming how;
  std::shared_ptr<const renewal_news> renewals;
  std::chrono::milliseconds began_at;  // When it was called for, by lease_watch::now(): the start of local: takes time.
};

// Makes the client; without a server named it is local:, and stderr says so. Throws error and usage_error.
server open_server(const settings& s);
server open_server(const settings& s, client_options options);

// --uri or HOLDFAST_URI; nullopt: neither. Warns of a password that everybody can read. Throws usage_error for a
// HOLDFAST_URI that is set and empty.
std::optional<std::string_view> named_server(const settings& s);

// What a client is told beside its server. Reads --password-file, which may be a FIFO that nobody writes to.
client_options options_of(const settings& s);

}  // namespace holdfast::cli
