// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.hpp"

#include "net/clock.hpp"
#include "net/cluster_watch.hpp"
#include "net/quiet_thread.hpp"
#include "net/sentinel_watch.hpp"

#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace holdfast::net {

namespace asio = boost::asio;

// Shared with the thread, which may outlive the one who asked.
struct resolver::shared {
  explicit shared(std::shared_ptr<const standing_connections> known) : standing{std::move(known)} {}

  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const int error_of_fd = fd < 0 ? errno : 0;
  const std::shared_ptr<const standing_connections> standing;
  std::mutex mutex{};
  engine::named_primary::term_number term = 0;  // Where others name it: of whom they named.
  tcp_address name{};                           // What is looked up, if it is a name,
  time_point asked_at = never;                  // and since when.
  std::optional<resolved> answer{};
  time_point answered_at{};

  ~shared() {
    if (fd >= 0) ::close(fd);
  }

  void look_up_of(engine::named_primary::term_number whom) {
    const std::lock_guard lock{mutex};
    term = whom;
  }

  void asks(const tcp_address& whom) {
    const std::lock_guard lock{mutex};
    name = whom;
    asked_at = boottime_now();
    wake_in(patience);
  }

  // Zero: not at all.
  void wake_in(std::chrono::nanoseconds time) const {
    itimerspec at{};
    at.it_value.tv_nsec = time.count();
    timerfd_settime(fd, 0, &at, nullptr);
  }

  // With the mutex.
  std::optional<resolved> known() const {
    if (name.host.empty()) return std::nullopt;
    resolved other;
    other.name = text_of(name);
    other.addresses = standing->of(other.name);
    if (other.addresses.empty()) return std::nullopt;
    other.host = name.host;
    other.term = term;
    other.is_under_way = !answer;
    return other;
  }

  bool is_answered() {
    const std::lock_guard lock{mutex};
    return answer.has_value();
  }

  void set(resolved what) {
    {
      const std::lock_guard lock{mutex};
      answer = std::move(what);
      answer->term = term;
      answered_at = boottime_now();
    }
    wake_in(std::chrono::nanoseconds{1});
  }
};

namespace {

resolved look_up(const tcp_address& where, asio::ip::resolver_base::flags how) {
  asio::io_context context;
  asio::ip::tcp::resolver by_name{context};
  boost::system::error_code ec;
  const auto found = by_name.resolve(where.host, where.port, how, ec);
  resolved result;
  result.host = where.host;
  if (how == asio::ip::resolver_base::flags{}) result.name = text_of(where);
  for (const auto& entry : found) {
    socket_address address;
    address.size = static_cast<socklen_t>(entry.endpoint().size());
    std::memcpy(&address.bytes, entry.endpoint().data(), address.size);
    result.addresses.push_back(address);
  }
  if (ec) result.failure = ec.message();
  if (!ec && result.addresses.empty()) result.failure = "the name has no address";
  // A name server that is not there yet, as while a machine starts, has said nothing about the name.
  const bool is_of_this_machine = ec && ec.category() == asio::error::get_system_category();
  result.is_refusal = ec != asio::error::host_not_found_try_again && !is_of_this_machine;
  return result;
}

// `localhost` is this machine, whatever a name server or a missing /etc/hosts says (RFC 6761, 6.3). Its certificate is
// still the one that was asked for: of the name.
resolved literal_of(const tcp_address& where) {
  const auto as_it_is = asio::ip::resolver_base::numeric_host | asio::ip::resolver_base::numeric_service;
  if (where.host != "localhost") return look_up(where, as_it_is);
  auto both = look_up({"127.0.0.1", where.port}, as_it_is);
  const auto second = look_up({"::1", where.port}, as_it_is);
  both.addresses.insert(both.addresses.end(), second.addresses.begin(), second.addresses.end());
  both.host = where.host;
  return both;
}

resolved of_path(const std::string& path) {
  sockaddr_un un{};
  if (path.size() >= sizeof un.sun_path) {
    resolved result;
    result.failure = "the socket path has " + std::to_string(path.size()) + " bytes; the system allows 107";
    result.is_refusal = true;
    return result;
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  socket_address address;
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  std::memcpy(&address.bytes, &un, sizeof un);
  resolved result;
  result.addresses.push_back(address);
  return result;
}

// Of a thread that what is thrown would end, and the program with it. These words need no memory.
resolved look_up_or_say_why(const tcp_address& where) try {
  return look_up(where, asio::ip::resolver_base::flags{});
} catch (const std::bad_alloc&) {
  resolved result;
  result.failure = "out of memory";
  return result;
}

// What has an address at once is answered at once; a name by a thread of its own, into `into`.
template <class Shared>
void look_up_into(const std::shared_ptr<Shared>& into, const tcp_address& where,
                  engine::named_primary::term_number term) {
  into->look_up_of(term);
  auto literal = literal_of(where);
  if (!literal.addresses.empty()) return into->set(std::move(literal));
  into->asks(where);
  try {
    start_quietly([into, where] { into->set(look_up_or_say_why(where)); }).detach();
  } catch (const std::system_error& e) {
    resolved result;
    result.failure = std::string{"no thread for the look-up: "} + e.what();
    into->set(std::move(result));
  }
}

// Nobody to connect to, and why.
resolved nobody(errc code, std::string failure, bool is_final, bool is_refusal) {
  resolved result;
  result.code = code;
  result.failure = std::move(failure);
  result.is_final = is_final;
  result.is_refusal = is_refusal;
  return result;
}

// Who connects makes the watch look: should nobody be there, that is told better the next time.
template <class Shared>
void look_up_into(const std::shared_ptr<Shared>& into, const cluster_node_address& node) {
  try {
    // In this order: what is looked up of an address that is not its any more is known by its term.
    const auto term = node.named ? node.named->term() : 0;
    const auto where = node.where ? node.where->get() : tcp_address{};
    // Before anybody has named it nothing that it answers would count, nor later over that connection.
    if (!where.host.empty() && term != 0) {
      node.watch->look();
      return look_up_into(into, where, term);
    }
    const auto* of_whom =
        term != 0 ? "its cluster has lost its address" : "no majority of its primaries names one for this slot";
    node.watch->look([into, of_whom](const cluster_watch::trouble& why) {
      const std::string text = why.text.empty() ? of_whom : why.text;
      into->set(nobody(why.code, text, why.is_final, why.is_refusal));
    });
  } catch (const std::system_error& e) {
    into->set(nobody(errc::no_primary, std::string{"no thread to ask the cluster: "} + e.what(), false, false));
  }
}

}  // namespace

resolver::resolver(const endpoint& where) : shared_{std::make_shared<shared>(where.standing)} {
  find(where);
  // Nobody would hear of an answer that comes later.
  if (shared_->fd < 0 && !shared_->is_answered()) {
    shared_->set(nobody(errc::cannot_connect, std::generic_category().message(shared_->error_of_fd), false, false));
  }
}

void resolver::find(const endpoint& where) {
  if (const auto* path = std::get_if<unix_address>(&where.where)) {
    shared_->set(of_path(path->path));
    return;
  }
  if (const auto* tcp = std::get_if<tcp_address>(&where.where)) {
    look_up_into(shared_, *tcp, 0);
    return;
  }
  if (const auto* node = std::get_if<cluster_node_address>(&where.where)) {
    look_up_into(shared_, *node);
    return;
  }
  try {
    std::get<named_address>(where.where)->find([into = shared_](const sentinel_watch::found& primary) {
      if (primary.term != 0) return look_up_into(into, primary.where, primary.term);
      into->set(nobody(primary.code, primary.failure, primary.is_final, false));
    });
  } catch (const std::system_error& e) {
    shared_->set(nobody(errc::no_primary, std::string{"no thread to ask the sentinels: "} + e.what(), false, false));
  }
}

resolver::~resolver() = default;

int resolver::wake_fd() const { return shared_->fd; }

std::optional<resolved> resolver::take() {
  const std::lock_guard lock{shared_->mutex};
  auto& answer = shared_->answer;
  const bool is_late = !answer && boottime_now() - shared_->asked_at >= patience;
  if (is_late || (answer && answer->addresses.empty())) {
    if (auto known = shared_->known()) return known;
  }
  if (is_late) shared_->wake_in(std::chrono::nanoseconds{0});  // Whoever waits would not sleep.
  return std::exchange(answer, std::nullopt);
}

std::string resolver::looks_up() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->answer ? std::string{} : shared_->name.host;
}

bool resolver::is_too_old(time_point now) const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->answer && now - shared_->answered_at > answer_lasts;
}

bool resolver::is_good_for(const endpoint& where, time_point now) const {
  if (is_too_old(now)) return false;
  const std::lock_guard lock{shared_->mutex};
  if (shared_->answer && shared_->answer->addresses.empty()) return false;  // Perhaps it is better now.
  if (shared_->term == 0) return true;
  if (const auto* named = std::get_if<named_address>(&where.where)) return (*named)->primary()->term() == shared_->term;
  const auto* node = std::get_if<cluster_node_address>(&where.where);
  return !node || node->named->term() == shared_->term;
}

}  // namespace holdfast::net
