// SPDX-License-Identifier: Apache-2.0
// The connection that the calling threads drive themselves. Handing every request to an IO thread costs two thread
// switches a call; instead the caller reads the socket when nobody else does, and hands the lead on when its own
// answer is in (P29 to P32).
//
//  who leads | a call starts          | its answer is in         | its time is up
//  ----------+------------------------+--------------------------+---------------------------
//  nobody    | the caller leads       | -                        | -
//  a caller  | waits, or is woken     | leaves; if it led, wakes another, or gives the lead to the deputy
//  deputy    | the caller takes over  | -                        | -
//
// Who leads also reads the connection on which the line tells us to look: a waiting thread takes its hint from the
// socket itself, without a switch of threads in between. It is opened with the first waiter.
//
// A caller whose answer is in is woken when nothing is left for it to do here (waiting_thread.hpp). Those who are woken
// by the dozen ask again at once, and a write for each takes longer than what the server does for it: they leave it to
// the leader while that one is waking others, up to sixteen of them.
//
// The deputy is a thread of ours (deputy_thread.hpp). It leads only when no caller waits but there is something to do:
// requests are unanswered, whose late replies must be read (P31), or calls are open that no thread waits for. Those are
// stepped by whoever leads. And for a while after somebody left the line unanswered, whom the line may still call (P5).
// The keeper never leads: it would wait for our mutex, and so for whoever stands still with it (P32).
#pragma once

#include "client/async_call.hpp"
#include "client/connection.hpp"
#include "client/waiting_thread.hpp"
#include "engine/acquire.hpp"
#include "engine/caller.hpp"
#include "engine/hints.hpp"
#include "engine/named_primary.hpp"
#include "engine/unattended.hpp"
#include "net/event_fd.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class command_connection {
public:
  command_connection(const net::endpoint& where, const engine::channel::settings& settings, base::random_source& rng,
                     engine::caller::hooks tell, std::string ear_name);

  // Runs a call to its end on the calling thread. `cancel` ends an acquire early. `when_asked`: called once, without
  // our mutex, when whatever is started from then on comes behind its request.
  void run(engine::call& what, const std::function<void()>& when_asked = {});
  void run(engine::acquire& what, const std::stop_token& cancel);
  // Runs several together, in one write as far as they are ready: for questions that belong together.
  void run_all(const std::vector<engine::call*>& all);

  // Runs a call without a thread that waits for it. When it is over it is handed to on_async_end's receiver, once, by
  // whichever thread noticed, without our mutex.
  void start(const std::shared_ptr<async_call>& what);
  // The same with one that was under way elsewhere. It waits for nobody, who may stand still with our mutex (P32):
  // whoever drives takes it up. Throws without memory.
  void take_up(std::shared_ptr<async_call> what);
  // One that says is_cancelled(); nothing, if it is over. Where somebody has our mutex whoever drives does it: a stop
  // callback waits for nobody, because the loss of other leases may wait for that (C4, P32).
  void cancel(async_call& what);
  void cancel_all_async();

  // Whatever is about a slot that is not served here any more is done here, and goes on elsewhere (engine/call.hpp).
  // Nothing, where a caller stands still with our mutex: for that one nobody else is to wait (P32). Ask again.
  void leave_server(const std::function<bool(int slot)>& is_served_here);

  // For making a call; only a call that runs touches it.
  engine::channel& channel() { return caller_.wire(); }
  engine::hints& ear() { return ear_; }
  struct past {
    bool had_contact;     // Has there ever been a connection?
    int attempts;         // How often in a row has it been tried to make one?
    duration round_trip;  // Of the last answer.
  };
  past so_far();
  // Sends it on the present connection, if there is one; nobody hears of the answer. It cannot overtake what was sent
  // before on that connection.
  void send_and_forget(const script::command& what);
  // A release that was answered lets a line go on just now.
  bool is_going_on();
  core::server_clock server_clock();
  // What the server said last of a quarantine that still lasts.
  std::optional<engine::quarantine> quarantine();
  // Somebody left whom the line may call until then.
  void listen_until(time_point at);
  // What the last connection failed of, or the first is waiting for; and how often in a row.
  std::pair<engine::connection_failure, int> trouble();

  // Something has changed that the connections must mind: wakes the caller that leads, if one does (the deputy has its
  // own look_around()). Waits for nobody.
  void look_around();

  // How the deputy is asked to lead, or to look around while it does. Set once, before the first call; called under our
  // mutex, and must not throw.
  void on_lead_for_deputy(std::function<void()> wake) { wake_deputy_ = std::move(wake); }
  // Who hears of a hint for somebody whom no call waits as. Set once, before the first call; called under our mutex.
  using stray_hint = std::function<void(std::string_view owner, server_time said_at)>;
  void on_stray_hint(stray_hint tell) { tell_of_stray_hint_ = std::move(tell); }
  // As connection::on_refused, of the one on which calls ask.
  void on_refused(std::function<void()> tell) { line_.on_refused(std::move(tell)); }
  // Who concludes the calls that no thread waits for, or takes them elsewhere. Set once, before the first of them.
  using ended_calls = std::vector<std::shared_ptr<async_call>>;
  void on_async_end(std::function<void(ended_calls)> conclude) { conclude_ = std::move(conclude); }

  // The deputy's: what to wait for while it leads, and what to do when it woke. Nothing, if it does not lead.
  struct deputy_wait {
    std::array<pollfd, 2> fds;
    time_point until;
  };
  std::optional<deputy_wait> deputy_waits_for();
  void deputy_collect(const pollfd& commands, const pollfd& ear);

private:
  enum class lead { nobody, caller, deputy, deputy_busy };

  connection::lock locked() { return connection::lock{line_.mutex()}; }
  engine::caller::hooks with_ear(engine::caller::hooks tell);
  void prepare(connection::lock& held);
  time_point wake_at() const;
  void wait_in_poll(connection::lock& held, time_point until);
  void drive_async(connection::lock& held);
  bool leave_to_deputy();
  void start_under(connection::lock& held, const std::shared_ptr<async_call>& what);
  void begin(engine::call& flow, connection::lock& held);
  void start_arrived(connection::lock& held) noexcept;
  void cancel_marked() noexcept;
  void cancel_under(connection::lock& held, async_call& what);
  void take_back(async_call& what);
  void conclude_ended(connection::lock& held);
  ended_calls taken_ended(std::vector<engine::call*> (engine::unattended::*take)());
  void run_together(const std::vector<engine::call*>& all, engine::acquire* cancelled, const std::stop_token& cancel,
                    const std::function<void()>& when_asked);
  void take_lead_if_free(waiting_thread& me);
  void lead_one_round(connection::lock& held, const waiting_thread& me, const std::vector<engine::call*>& all);
  void write(connection::lock& held, const waiting_thread& me);
  void wake_others(connection::lock& held, const waiting_thread& me);
  void stop_all(const waiting_thread::calls& all);
  void leave(waiting_thread& me);
  void pass_lead_on();
  bool is_deputy_needed();
  void wake_members(connection::lock& held);
  waiting_thread::list called_members();
  void wake_driver();
  void wake_driver_if_sooner();

  bool is_somebody_named() const;

  const bool uses_tls_;
  const bool is_of_nobody_;                                   // A cluster's, before it is known who serves what.
  const std::shared_ptr<const engine::named_primary> named_;  // By sentinels, or of a cluster. Null: by the URI.
  net::event_fd wake_leader_{};
  std::mutex mutex_{};  // Of both connections.
  engine::caller caller_;
  connection line_;
  engine::hints ear_;
  connection ear_line_;
  engine::unattended unattended_;
  std::mutex arriving_{};  // Of those two, and of nothing for which anybody waits.
  std::vector<std::shared_ptr<async_call>> arrived_{};
  std::atomic<bool> has_arrived_{false};
  std::atomic<bool> has_cancelled_{false};  // Of the calls that no thread waits for, and it was not done.
  int async_calls_ = 0;
  lead lead_ = lead::nobody;
  time_point leader_wakes_at_{};   // While it sleeps in poll, else past.
  time_point deputy_wakes_at_{};   // Likewise.
  bool deputy_is_called_ = false;  // And will write what waits when it comes.
  time_point listen_until_{};
  waiting_thread::members members_{};  // The threads in run_all(), leading or not.
  waiting_thread::news with_news_{};
  bool leader_is_waking_ = false;  // Others, without the mutex; what is asked meanwhile is written behind that.
  int left_to_leader_ = 0;         // So many have left their write to it.
  std::function<void()> wake_deputy_{};
  stray_hint tell_of_stray_hint_{};
  std::function<void(ended_calls)> conclude_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
