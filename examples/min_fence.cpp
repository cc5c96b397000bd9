// SPDX-License-Identifier: Apache-2.0
// Heals a token that went back. Redis lost its data and its clock is behind the last token: the newest holder's token
// is smaller than the one that the resource has seen, and the resource refuses it as stale. What the refusal names as
// current goes in here; every token that this server grants for the name from now on is larger.
//
//   HOLDFAST_URI=redis://db1 min_fence account:7 1795210575374472
#include <holdfast/holdfast.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: min_fence NAME CURRENT\n");
    return 64;
  }
  try {
    const auto current = holdfast::fencing_token::parse(argv[2]);
    if (!current) {
      std::fprintf(stderr, "min_fence: not a fencing token: '%s'; take the number that the resource named\n", argv[2]);
      return 64;
    }
    holdfast::client locks;
    auto lease = locks.acquire(argv[1], {.min_fence = *current});
    std::printf("%s\n", lease.token().to_string().c_str());
    return 0;
  } catch (const holdfast::error& e) {
    std::fprintf(stderr, "min_fence: %s\n", e.what());
    return 1;
  }
}
