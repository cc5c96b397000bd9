// SPDX-License-Identifier: Apache-2.0
// Host name to addresses without blocking the one who asks: getaddrinfo(3) has no time limit of its own, so it runs in
// a thread that nobody waits for, and a name server that is silent costs the caller only its deadline (H22). What takes
// longer than that is not begun again: whoever asks next has the same look-up.
#pragma once

#include "base/time.hpp"
#include "engine/named_primary.hpp"
#include "net/endpoint.hpp"
#include "net/socket_address.hpp"

#include <holdfast/error.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::net {

struct resolved {
  std::vector<socket_address> addresses{};
  std::string failure{};  // Set when there are none; and of what kind it is:
  errc code = errc::cannot_resolve;
  bool is_final = false;
  bool is_refusal = false;                      // Somebody definitely said no.
  bool is_under_way = false;                    // The look-up is: these are addresses where other connections stand.
  std::string host{};                           // Whose certificate is expected there. Empty: a Unix path.
  std::string name{};                           // That was looked up, with its port. Empty: no name.
  engine::named_primary::term_number term = 0;  // Where others name it: of which primary.
};

// One look-up. Its answer serves one connection: a server that moved is found with the next. Where whoever asked has
// given up before it came, the next one has it, within `answer_lasts` (H23).
class resolver {
public:
  // Literals, localhost and Unix paths are answered at once. Path too long: a failure.
  explicit resolver(const endpoint& where);
  ~resolver();
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;

  // Becomes readable when the answer is there, or when it is late.
  int wake_fd() const;
  // The answer, once. Where there is none for a while, or the name has no address, and other connections to the
  // endpoint stand: where these lead. The name service has said nothing better, and their server is the one that we
  // know.
  std::optional<resolved> take();
  static constexpr std::chrono::milliseconds patience{100};

  // The name, which has no answer yet. Empty: nobody has to be asked for one.
  std::string looks_up() const;

  // Is it worth more than a new look-up there? It is under way, or has come to addresses not long ago, and those who
  // name the primary name the same still.
  bool is_good_for(const endpoint& where, time_point now) const;
  // Is it answered, and has been for so long that a new look-up may say something else?
  bool is_too_old(time_point now) const;
  static constexpr std::chrono::seconds answer_lasts{5};

private:
  struct shared;
  void find(const endpoint& where);

  std::shared_ptr<shared> shared_;
};

}  // namespace holdfast::net
