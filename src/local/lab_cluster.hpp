// SPDX-License-Identifier: Apache-2.0
// Making a cluster of nodes that know nothing yet. By our own commands and not `redis-cli --cluster create`: no second
// program to find, none whose words could change, and when it fails we know which node it was and what it said.
#pragma once

#include "local/lab_ready.hpp"

namespace holdfast::local {

// The primaries share the slots evenly, and each gets one replica. Returns when all of that was accepted; that it has
// got around, missing_of() says.
void form_cluster(const lab_record& lab, const lab_patience& patience);

}  // namespace holdfast::local
