// SPDX-License-Identifier: Apache-2.0
// One typed command for each script, and its bytes.
#pragma once

#include "base/time.hpp"
#include "script/keys.hpp"
#include "script/source.hpp"

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::script {

// A script call, ready to be encoded as EVALSHA or, after NOSCRIPT, as EVAL.
struct command {
  id script;
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

enum class call { by_digest, by_text };
void append(std::string& out, const command& what, call how);

// `label` is cut at 256 bytes; `|` and control bytes in it are percent-escaped.
// `not_after` is the server time after which this copy must have no effect; zero (the epoch) means none.
command acquire(const lock_keys& keys, const owner_id& owner, std::chrono::milliseconds ttl, server_time not_after,
                std::chrono::milliseconds max_ttl, std::string_view label, fencing_token min_fence);
command renew(const lock_keys& keys, const owner_id& owner, fencing_token token, std::chrono::milliseconds ttl);

// Without a token (a clean-up after an unknown acquire, which never learned it) only the owner id is compared.
command release(const lock_keys& keys, const owner_id& owner, fencing_token token);
command inspect(const lock_keys& keys);
command break_lock(const lock_keys& keys, fencing_token seen, break_mode mode, std::string_view by,
                   std::string_view why);

}  // namespace holdfast::script
