// SPDX-License-Identifier: Apache-2.0
// Byte streams between clients and the server, as TCP gives them: in order within a direction of a connection, in no
// order between connections, with delay, pauses, cuts, and ends that one side never hears of.
#pragma once

#include "event_queue.hpp"
#include "seeded_random.hpp"

#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::sim {

// The side that connected.
class client_end {
public:
  client_end() = default;
  client_end(const client_end&) = delete;
  client_end& operator=(const client_end&) = delete;

  virtual void on_connected(int id) = 0;
  virtual void on_refused(int id) = 0;
  virtual void on_bytes(int id, std::string_view bytes) = 0;
  virtual void on_closed(int id) = 0;

protected:
  ~client_end() = default;
};

class server_end {
public:
  server_end() = default;
  server_end(const server_end&) = delete;
  server_end& operator=(const server_end&) = delete;

  virtual bool accepts() = 0;
  virtual void on_accepted(int id, int host) = 0;
  // `sent_at`: when the client wrote them.
  virtual void on_bytes(int id, std::string_view bytes, instant sent_at) = 0;
  virtual void on_closed(int id) = 0;
  // Until then it reads nothing.
  virtual instant stuck_until() = 0;

protected:
  ~server_end() = default;
};

// Between one process and the server.
struct route {
  duration least{std::chrono::microseconds{100}};
  duration jitter{std::chrono::microseconds{50}};
  int split_percent = 0;  // Of the writes that arrive in two pieces.
  duration spike{0};      // Added to `spike_percent` of the writes, up to this.
  int spike_percent = 0;
  instant blocked_until{};  // Nothing gets through, and nothing is lost.
};

class network {
public:
  // The numbers of its connections are above `first`.
  network(event_queue& events, server_end& server, seeded_random rng, int first = 0)
      : events_{&events}, server_{&server}, rng_{rng}, last_{first} {}

  route& of(int host) { return routes_[host]; }

  int connect(client_end& who, int host);
  void send(int id, std::string_view bytes);
  // What was written is still delivered, and then the server hears of the end.
  void close(int id);
  void server_sends(int id, std::string_view bytes);
  // What was written is still delivered, and then the client hears of the end.
  void server_closes(int id);

  // Somebody in between ends it for both. What is under way to the server may or may not get there.
  void cut(int id);
  // From now on nothing gets through in this direction, and nobody is told, until the client's TCP finds out.
  enum class way { to_server, to_client };
  void silence(int id, way where);
  // Nothing gets through before that.
  void block(int id, way where, instant until);

  std::vector<int> open_connections() const;
  std::vector<int> connections_of(int host) const;
  bool is_open(int id) const { return links_.contains(id); }
  // Has its client closed it, or heard of its end?
  bool is_given_up(int id) const { return !links_.at(id).client; }
  int host_of(int id) const { return links_.at(id).host; }

private:
  struct parcel {
    std::string bytes;
    instant sent_at;
    enum class what { bytes, end, open, refuse } is = what::bytes;
  };
  struct one_way {
    std::deque<parcel> under_way{};
    instant last_at{};
    instant blocked_until{};
    bool is_silent = false;
  };
  struct link {
    client_end* client;  // Null: it has closed.
    int host;
    bool server_knows = false;
    one_way to_server{};
    one_way to_client{};
  };

  void push(int id, link& of, way where, parcel what);
  void deliver(int id, way where);
  void deliver_to_server(int id, link& of, const parcel& what);
  void deliver_to_client(int id, link& of, const parcel& what);
  void forget_if_over(int id);

  event_queue* events_;
  server_end* server_;
  seeded_random rng_;
  int last_;
  std::map<int, route> routes_;
  std::map<int, link> links_;
};

}  // namespace holdfast::sim
