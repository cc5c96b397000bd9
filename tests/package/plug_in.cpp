// SPDX-License-Identifier: Apache-2.0
// A plug-in that has a lock for a moment, on the server that HOLDFAST_URI names. The lease ends behind its client, so
// that nobody waits for the client's threads.
#include <holdfast/holdfast.hpp>

#include <exception>

extern "C" [[gnu::visibility("default")]] bool use_lock() {
  try {
    holdfast::lease held;
    {
      holdfast::client locks;
      held = locks.acquire("plug-in");
    }
    return held.release() == holdfast::release_outcome::released;
  } catch (const std::exception&) {
    return false;
  }
}
