// SPDX-License-Identifier: Apache-2.0
#include "option_words.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace holdfast::cli {
namespace {

// Each field that an option sets, and the option.
constexpr std::array option_names{
    std::pair{"timeout", "--server-timeout"},
    std::pair{"max_ttl", "--max-ttl"},
    std::pair{"durability.replicas", "--replicas"},
    std::pair{"durability.timeout", "--replicas-timeout"},
    std::pair{"ttl", "--ttl"},
    std::pair{"wait", "--wait"},
    std::pair{"max_hold", "--max-hold"},
    std::pair{"min_fence", "--min-fence"},
    std::pair{"ready_within", "--ready-within"},
    std::pair{"prefix", "--prefix"},
    std::pair{"owner", "--owner"},
    std::pair{"cacert", "--cacert"},
    std::pair{"cert", "--cert"},
    std::pair{"key", "--key"},
};

}  // namespace

std::string as_typed(const std::string& subject) {
  const auto end = subject.find(' ');
  for (const auto& [field, typed] : option_names) {
    if (subject.substr(0, end) != field) continue;
    auto rest = end == subject.npos ? std::string{} : subject.substr(end);
    if (rest.starts_with(" = ")) rest.erase(0, 2);
    return typed + rest;
  }
  return subject;
}

std::string in_words_of_options(std::string text) {
  for (const auto& [field, typed] :
       {std::pair{"quarantine = trust_every_write_is_synced", "--trust-every-write-is-synced"},
        std::pair{"durability.replicas = ", "--replicas "}, std::pair{"durability.replicas", "--replicas"},
        std::pair{"durability.timeout", "--replicas-timeout"}})
    for (auto at = text.find(field); at != text.npos; at = text.find(field, at))
      text.replace(at, std::strlen(field), typed);
  return text;
}

}  // namespace holdfast::cli
