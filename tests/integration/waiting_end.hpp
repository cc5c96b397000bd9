// SPDX-License-Identifier: Apache-2.0
// The worker that ends while a handler of its waits. A file of its own because Asio is: the others need none.
#pragma once

#include <holdfast/holdfast.hpp>

#include <string>
#include <vector>

namespace holdfast::test {

// The words are described in worker.cpp.
int end_waiting(client& begun, const std::vector<std::string>& words);

}  // namespace holdfast::test
