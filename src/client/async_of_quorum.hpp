// SPDX-License-Identifier: Apache-2.0
// As the calls of holdfast/start.hpp with these names, of a quorum.
#pragma once

#include "client/client_state.hpp"
#include "script/command.hpp"

#include <holdfast/start.hpp>

#include <memory>

namespace holdfast {
inline namespace v0 {
namespace detail {

cancel_handle start_acquire_of(quorum& by, const std::shared_ptr<client_state>& of, const acquire_target& what,
                               const acquire_options& options, const script::part& part,
                               std::shared_ptr<acquire_receiver> to);
void start_release_of(quorum& by, std::unique_ptr<lease_handle> what, release_receiver to);
void start_downgrade_of(quorum& by, const std::shared_ptr<client_state>& of, std::shared_ptr<lease_record> what,
                        code_receiver to);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
