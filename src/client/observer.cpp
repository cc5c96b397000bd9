// SPDX-License-Identifier: Apache-2.0
#include <holdfast/observer.hpp>

namespace holdfast {
inline namespace v0 {

observer::~observer() = default;

}  // namespace v0
}  // namespace holdfast
