// SPDX-License-Identifier: Apache-2.0
// A lock with several places: at most `size` permits are out at any time, over all machines.
#pragma once

#include <holdfast/client.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast {
inline namespace v0 {

namespace detail {
struct acquire_target;
}

// Each acquire gets a lease of its own, with its own owner id, token and renewal: when a holder dies, its permits come
// back with its ttl, whatever the others do. Tokens increase in the order of the grants, but the guard of
// docs/fencing.md is for exclusive locks: of several holders at once none is the last.
//
// All stand in one line, first come, first served: who wants many permits is not overtaken by those who want few.
//
// The size lives on the server, for a week after the last use. The first to use a name sets it; who then comes with
// another one gets errc::other_size, which names both, because nobody can say which of two sizes was meant. resize()
// changes it. A name that is used as a lock or as a shared_mutex is errc::wrong_kind. naming::holdfast only.
//
// On a quorum of N servers a holder of one of K places needs floor(N * K / (K + 1)) + 1 votes, which is more than a
// majority: all of three servers for two places (docs/topologies.md). Order is that of those who wait; there is no
// resize.
//
// Safe from any thread; nothing is sent before the first call. `locks` must outlive it.
class HOLDFAST_EXPORT semaphore {
public:
  // 1 to 1,000,000 permits, else errc::invalid_option.
  semaphore(client& locks, std::string_view name, int size);
  ~semaphore();
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  const std::string& name() const noexcept { return name_; }
  int size() const noexcept { return size_; }

  // As client::try_acquire and client::acquire, for acquire_options::permits of them; more than size() is
  // errc::invalid_option. Release and drop the lease as any other.
  [[nodiscard]] std::optional<lease> try_acquire(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> try_acquire(const acquire_options& options, std::error_code& ec);
  [[nodiscard]] lease acquire(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> acquire(const acquire_options& options, std::error_code& ec);

  // Says how many permits there are, for everybody: others who name the old size get errc::other_size from then on.
  // More of them go to the line at once. With fewer, whoever holds some keeps them, so for a while more may be out
  // than there are; nobody is let in before enough have come back. Who waits for more than there now are gets
  // errc::other_size at its next look (5 s). Waits for the answer, behind which no copy of the request takes effect any
  // more: after a cut that is a second later. Throws holdfast::error; after errc::reply_lost the size may be either. On
  // a quorum it is errc::invalid_option. Not to be called at the same time as other calls on the same object.
  void resize(int size);
  void resize(int size, std::error_code& ec);

private:
  friend struct detail::acquire_target;

  client& locks_;
  std::string name_;
  int size_;
};

}  // namespace v0
}  // namespace holdfast
