// SPDX-License-Identifier: Apache-2.0
// Looks at a server with a lock's eyes, for diagnose() and `holdfast doctor`.
#pragma once

#include "client/client_state.hpp"

namespace holdfast {
inline namespace v0 {
namespace detail {

diagnosis diagnose(client_state&);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
