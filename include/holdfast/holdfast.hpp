// SPDX-License-Identifier: Apache-2.0
// Everything: distributed locks for C++ on Redis. Start reading at client.hpp.
#pragma once

#include <holdfast/client.hpp>           // IWYU pragma: export
#include <holdfast/error.hpp>            // IWYU pragma: export
#include <holdfast/info.hpp>             // IWYU pragma: export
#include <holdfast/lab.hpp>              // IWYU pragma: export
#include <holdfast/lease.hpp>            // IWYU pragma: export
#include <holdfast/lease_set.hpp>        // IWYU pragma: export
#include <holdfast/local.hpp>            // IWYU pragma: export
#include <holdfast/mutex.hpp>            // IWYU pragma: export
#include <holdfast/names.hpp>            // IWYU pragma: export
#include <holdfast/observer.hpp>         // IWYU pragma: export
#include <holdfast/options.hpp>          // IWYU pragma: export
#include <holdfast/quorum.hpp>           // IWYU pragma: export
#include <holdfast/recursive_mutex.hpp>  // IWYU pragma: export
#include <holdfast/semaphore.hpp>        // IWYU pragma: export
#include <holdfast/shared_mutex.hpp>     // IWYU pragma: export
#include <holdfast/version.hpp>          // IWYU pragma: export
