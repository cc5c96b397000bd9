// SPDX-License-Identifier: Apache-2.0
// One connection to a server, as non-blocking steps: resolve, connect, TLS files and handshake, read, write. It decides
// nothing and waits for nothing; whoever drives it polls what poll_for() says and calls the step that is due.
//
// Any thread may drive it, one at a time; write() alone may run beside the driver's other calls (rules P29 to P32).
#pragma once

#include "engine/greeting.hpp"
#include "engine/named_primary.hpp"
#include "net/address_attempts.hpp"
#include "net/endpoint.hpp"
#include "net/resolver.hpp"
#include "net/spin_habit.hpp"
#include "net/tls_reader.hpp"
#include "net/tls_session.hpp"

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::net {

class link {
public:
  explicit link(endpoint where);
  ~link();
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  enum class progress { pending, open, failed };

  // Begins from closed. After `failed`, failure() tells and the link is closed; so it is when there was no memory.
  progress open();
  // While opening: what poll_for() asked for has happened.
  progress advance();
  // The next open() goes on with what is under way, a look-up or a reading of files, and tries an address that was
  // silent until now last: it has not accepted, or has accepted and said nothing.
  void close();

  bool is_open() const { return phase_ == phase::open; }
  bool is_closed() const { return phase_ == phase::closed; }
  // Connected, but the TLS handshake is not through: a plain port says nothing at all to one (E13).
  bool is_shaking_hands() const { return phase_ == phase::shaking_hands; }

  // The name that is being looked up. Empty: no such thing, or nobody has said yet whose name that is.
  std::string looks_up() const { return phase_ == phase::resolving ? resolver_->looks_up() : std::string{}; }

  // Connected, and the TLS files are read: what of them that is now, in the words of a failure. Empty: no such thing.
  std::string reads() const;

  // How many steps of opening were ever begun: a look-up, a connection to an address, the TLS files, each turn of a TLS
  // handshake.
  // Each has its own time: a look-up's answer is good for one connection, so that time taken from that is lost with it.
  unsigned steps() const { return steps_; }

  // What to poll for. A closed link gives fd -1, which poll(2) passes over. `wants_write`: write() was refused.
  pollfd poll_for(bool wants_write) const;

  // Only when open. Appends what has come, of the wire's bytes `most_at_once`: whoever publishes faster than we read
  // would have us read for ever, and our waits would not end (B31). False: the connection is over, see failure().
  [[nodiscard]] bool read(std::string& into);
  static constexpr std::size_t most_at_once = 64 * 1024;

  // The same, but waits for the first byte, at most `patience`: one system call where poll and read are two, and none
  // that sleeps if the answer is there in a moment (net/spin_habit.hpp).
  // Only when waits_in_read().
  [[nodiscard]] bool read_waiting(std::string& into);
  bool waits_in_read() const { return phase_ == phase::open && !tls_; }
  static constexpr std::chrono::milliseconds patience{50};

  enum class written { all, some, failed };
  // Only when open. Takes all of `plain` (under TLS) or as much as the socket takes from its front.
  written write(std::string& plain);

  const engine::connection_failure& failure() const { return failure_; }
  // Of the primary that it leads to, where others name it; 0 before that is known.
  engine::named_primary::term_number term() const { return term_; }

private:
  enum class phase { closed, resolving, connecting, reading_files, shaking_hands, open };

  void reset();
  progress fail(errc code, std::string text, bool is_final, bool is_refusal);
  progress fail_handshake(const std::string& text);
  progress fail_tls(std::string why);
  void look_up();
  progress on_resolved();
  progress connect_next();
  progress on_connected();
  progress read_files();
  void read_anew(time_point now);
  progress on_read();
  progress shake_hands(std::string_view bytes);
  written send_from(std::string& bytes);
  bool receive(std::string& into, int flags);
  bool receive_into(std::string& into, int flags);

  endpoint where_;
  phase phase_ = phase::closed;
  unsigned steps_ = 0;
  int fd_ = -1;
  bool handshake_wants_write_ = false;
  bool has_spoken_ = false;  // The peer, in plain words,
  bool was_good_ = false;    // or one on a connection before.
  time_point spoke_at_{};    // First.
  std::unique_ptr<resolver> resolver_;
  address_attempts attempts_;
  std::string host_{};
  std::string name_{};  // With its port, if it was looked up.
  engine::named_primary::term_number term_ = 0;
  std::unique_ptr<tls_reader> reader_;
  std::unique_ptr<tls_session> tls_;
  std::string wire_;  // Encrypted, not yet written. Only the writer touches it once the link is open.
  spin_habit spinning_;
  engine::connection_failure failure_;
};

}  // namespace holdfast::net
