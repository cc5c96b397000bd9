// SPDX-License-Identifier: Apache-2.0
// Several locks taken one after the other, and held as one from then on.
#pragma once

#include "client/client_state.hpp"

#include <holdfast/lease_set.hpp>

#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

// What a lease_set holds. Empty ones have none.
class lease_set_handle {
public:
  lease_set_handle(std::shared_ptr<client_state> o, client_state::records r, std::vector<std::string> n)
      : owner{std::move(o)}, records{std::move(r)}, names{std::move(n)} {}

  std::shared_ptr<client_state> owner;
  client_state::records records;   // In the order of their names.
  std::vector<std::string> names;  // As they were given.
};

// As client::acquire_all.
lease_set acquire_all(client_state&, const std::vector<std::string>& names, const acquire_options&);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
