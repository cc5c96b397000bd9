// SPDX-License-Identifier: Apache-2.0
// The local: server for the rooms above: client calls start() when a URI says local:. It is the same as the public
// functions of holdfast/local.hpp; a header of its own, because client includes rooms, not its own public face.
#pragma once

#include "base/time.hpp"

#include <holdfast/local.hpp>

#include <chrono>
#include <string_view>

namespace holdfast::local {

// Long enough for a machine that swaps.
inline constexpr duration start_patience = std::chrono::seconds{15};

// Finds the server of `directory` (empty: the default one) or starts it; returns when it answers PING.
// One connect and one PING when it runs. Throws error with errc::local_server; about when `within` is over, if it hangs
// or its start does, but a start has a second, and none has more than `start_patience`.
local_status start(std::string_view directory, duration within = start_patience);

// Ends it and waits until it is gone. Not running is not an error.
local_status stop(std::string_view directory);

// Only looks: makes no directory and takes no lock.
local_status query(std::string_view directory);

}  // namespace holdfast::local
