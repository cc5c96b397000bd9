// SPDX-License-Identifier: Apache-2.0
// The server's error words, each mapped to what it means for us (hazards 8.12). None is ever "busy" or "lost".
#pragma once

#include <holdfast/error.hpp>

#include <string_view>

namespace holdfast::script {

// What the one who asked should do.
enum class reaction {
  load_script,  // NOSCRIPT: send the text at once, never shown.
  try_again,    // LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, BUSY: passes by itself; try until the deadline.
  reconnect,    // READONLY after it was a primary, max clients, protocol faults: a new connection may differ.
  elsewhere,    // MOVED, ASK: this node of a cluster does not serve the key, and did nothing.
  keep,         // OOM, MISCONF, NOREPLICAS: it takes no writes. A place in line that is there already is worth keeping.
  give_up,      // Trying again will not help: NOAUTH, WRONGPASS, NOPERM, WRONGTYPE, ...
};

// Who has nothing there yet is told, and does not ask again.
constexpr bool ends_a_call(reaction what) { return what == reaction::give_up || what == reaction::keep; }

struct classified {
  errc code;
  reaction what;
};

// `text` as the server sent it, without the leading '-'. Also knows the forms that errors take inside a script
// ("ERR The user executing the script can't run this command...", the suffix " script: <sha>, on @user_script:1.",
// and 6.2's "ERR Error running script ...: @user_script: ...").
classified classify(std::string_view text);

// The answer to CLUSTER of a server that is no node of any cluster.
bool is_of_no_cluster(std::string_view text);

}  // namespace holdfast::script
