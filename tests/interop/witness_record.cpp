// SPDX-License-Identifier: Apache-2.0
// One record for the witness, for peers that are shell scripts: witness_record FILE enter|exit WHO
#include "support/witness.hpp"

#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  holdfast::test::witness seen{argv[1]};
  const int who = std::atoi(argv[3]);
  if (std::string_view{argv[2]} == "enter") {
    seen.enter(who, 0);
  } else {
    seen.exit(who, 0);
  }
  return 0;
}
