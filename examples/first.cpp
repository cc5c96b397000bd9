// SPDX-License-Identifier: Apache-2.0
// The first program. README.md quotes it, tools/tidy compares the two, and tests/package builds and runs it.
#include <cstdio>
#include <holdfast/holdfast.hpp>

int main() try {
  holdfast::client locks{"local:"};              // this machine; a fleet shares "redis://db1"
  auto lease = locks.try_acquire("invoice:42");  // now or not at all; acquire() waits
  if (!lease) return std::puts("somebody has it"), 75;
  std::printf("mine, with fencing token %s\n", lease->token().to_string().c_str());
}  // released here, or after its ttl if we are killed
catch (const holdfast::error& e) {  // the server is away, say: whether somebody has it is not known
  return std::fprintf(stderr, "%s\n", e.what()), 69;
}
