// SPDX-License-Identifier: Apache-2.0
#include "script/slot.hpp"

#include <boost/crc.hpp>

namespace holdfast::script {

int slot_of(std::string_view key) {
  if (const auto open = key.find('{'); open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  // What Redis calls CRC16: the XMODEM kind.
  boost::crc_optimal<16, 0x1021> sum;
  sum.process_bytes(key.data(), key.size());
  constexpr int slots = 16'384;
  return sum.checksum() % slots;
}

}  // namespace holdfast::script
