// SPDX-License-Identifier: Apache-2.0
#include "resp/info.hpp"

namespace holdfast::resp {

std::string info_field(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    auto line = info.substr(0, info.find('\n'));
    info.remove_prefix(line.size() == info.size() ? line.size() : line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return std::string{line.substr(name.size() + 1)};
    }
  }
  return {};
}

}  // namespace holdfast::resp
