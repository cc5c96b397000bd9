// SPDX-License-Identifier: Apache-2.0
// From a kind of topology to servers that are ready, or to nothing.
#include "local/clock.hpp"
#include "local/directory.hpp"
#include "local/directory_lock.hpp"
#include "local/failure.hpp"
#include "local/lab.hpp"
#include "local/lab_cluster.hpp"
#include "local/lab_config.hpp"
#include "local/lab_ready.hpp"
#include "local/launch.hpp"
#include "local/process.hpp"
#include "local/shell_word.hpp"
#include "local/whole_file.hpp"

#include <holdfast/client.hpp>
#include <holdfast/detail/longest_wait.hpp>

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

std::string random_salt() {
  std::array<std::uint32_t, 4> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != sizeof bits) fail_with_errno("getrandom", "No random bits.", errno);
  return fmt::format("{:08x}", fmt::join(bits, ""));
}

// A server that keeps locks is ready for the first time: nobody can have lost a lock with it. Who keeps a new server in
// quarantine is told so here, once for each, and never after a restart. Under the usual prefix: nobody has said
// another.
void declare_first_start(const std::string& uri, const lab_patience& patience) {
  patience.check("its first start is not declared");
  // With a small max_ttl, because a quarantine lasts for the largest that any client has said. Not with the least: what
  // a cluster's primary says would count for 50 ms from when it was named, and a busy machine needs as long to ask.
  client_options brief;
  brief.max_ttl = 1s;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience.give_up_at - boottime_now());
  brief.timeout = std::clamp(left, 10ms, brief.timeout);
  try {
    client{uri, brief}.declare_nothing_forgotten();
  } catch (const error& e) {
    fail(uri, "Its first start cannot be declared" + patience.advice + ".", e.what());
  }
}

class starter {
public:
  starter(const lab_place& place, lab_record& lab, std::string server, const lab_patience& patience)
      : place_{place}, lab_{lab}, server_{std::move(server)}, patience_{patience} {}

  void run() {
    launch_all(lab_role::primary);  // First, so that a replica finds it at once and not when it tries again.
    launch_all(lab_role::replica);
    if (lab_.kind == lab_kind::cluster) form_cluster(lab_, patience_);
    // Sentinels ask a primary for its replicas when they see it, and then every ten seconds.
    if (lab_.kind == lab_kind::sentinel) patience_.until([this] { return missing_replicas_of(lab_); });
    launch_all(lab_role::sentinel);
    patience_.until([this] { return missing_of(lab_); });
    // Of a cluster each node takes the keys of its own slots only: a client of all of them knows which.
    if (lab_.kind == lab_kind::cluster) return declare_first_start(uri_of(lab_), patience_);
    for (const auto& member : lab_.members)
      if (member.role == lab_role::primary) declare_first_start(fmt::format("redis://{}", member.address()), patience_);
  }

private:
  void launch_all(lab_role role) {
    for (auto& member : lab_.members) {
      if (member.role != role) continue;
      write_files_of(member);
      launch_member(place_, server_, lab_, member);
    }
    for (const auto& member : lab_.members)
      if (member.role == role) patience_.until([&] { return missing_of(member); });
  }

  void write_files_of(const lab_member& member) {
    const auto home = place_.home_of(member);
    if (!make_directory(home)) fail_with_errno(home, "It cannot be made.", errno);
    const auto config = member.role == lab_role::sentinel ? sentinel_config(lab_, member, place_.directory, salt_)
                                                          : server_config(lab_, member, place_.directory);
    write_whole_file(place_.config_of(member), config, 0600, "It cannot be written.");
  }

  const lab_place& place_;
  lab_record& lab_;
  std::string server_;
  const lab_patience& patience_;
  std::string salt_ = random_salt();
};

// Nothing is left, or, if it cannot be ended, everything, or, if they cannot be removed, files: the words for that go
// behind those for what went wrong before.
std::string undo(const lab_place& place, const lab_record& record) {
  const char* what = "what was started is still there";
  try {
    const auto ended = end_all(place, record);
    what = "something was left";
    remove_all(place, record);
  } catch (const error& e) {
    return fmt::format(" And {} ({}: {}): `holdfast lab stop {}`.", what, e.detail().subject, e.detail().server_text,
                       shell_word(place.directory));
  }
  return {};
}

std::optional<int> launch_if_free(const daemon_plan& plan) {
  try {
    return launch(plan);
  } catch (const directory_taken&) {
    return std::nullopt;
  }
}

directory_lock lock_or_undo(const lab_place& place) {
  try {
    return directory_lock{place.lock_file(), 0600, boottime_now() + 1s};
  } catch (...) {
    // Unless somebody else is at work in it by now: that one's is the lock's file.
    if (place.was_made) ::rmdir(place.directory.c_str());
    throw;
  }
}

void check_ready_within(std::chrono::milliseconds span) {
  if (span >= 0ms && span <= detail::longest_wait) return;
  throw error{errc::invalid_option,
              {.subject = fmt::format("ready_within = {} ms", span.count()),
               .why = fmt::format("it must be 0 to {} ms", detail::longest_wait.count())}};
}

}  // namespace

void launch_member(const lab_place& place, const std::string& server, lab_record& lab, lab_member& member) {
  daemon_plan plan{.words = {server, place.config_of(member)},
                   .log_file = place.log_of(member),
                   .locked_directory = place.home_of(member),
                   .kept_directory = place.directory};
  if (member.role == lab_role::sentinel) plan.words.emplace_back("--sentinel");
  check_that_processes_can_be_watched();
  member.log_before = length_of(plan.log_file);
  member.pid = when_free(plan.locked_directory, [&] { return launch_if_free(plan); });
  member.started = started_at(member.pid);
  save(place, lab);
}

lab shown(const lab_place& place, const lab_record& record, const std::vector<lab_member>& members) {
  lab out{.uri = uri_of(record), .directory = place.directory};
  for (const auto& member : members)
    out.nodes.push_back({.address = member.address(), .role = std::string{word_of(member.role)}, .pid = member.pid});
  return out;
}

lab start(lab_kind kind, const lab_options& options, const port_source& ports) {
  const auto size = size_of(kind, options.count);
  check_ready_within(options.ready_within);
  const auto server = find_server();
  const auto give_up_at = boottime_now() + options.ready_within;
  const auto boot = boot_id();
  const auto place = make_lab_place(options.directory);
  lab_record record{.kind = kind, .persistent = options.persistent, .made_directory = place.was_made, .boot = boot};
  const auto lock = lock_or_undo(place);
  if (load(place)) fail(place.directory, "Somebody else has just started a lab in it; name another directory.");
  try {
    for (int attempt = 1;; ++attempt) {
      record.members = members_of(kind, options.count, ports(size));
      const lab_patience patience{place, record, give_up_at, options.cancel,
                                  "; --ready-within (lab_options::ready_within) gives it more"};
      save(place, record);  // Before there is a process: should we be killed, it is known where they can be.
      try {
        starter{place, record, server, patience}.run();
        if (options.cancel.stop_requested()) throw error(errc::cancelled);
        return shown(place, record, record.members);
      } catch (const port_taken&) {
        const auto ended = end_all(place, record);
        remove_nodes(place, record);
        if (attempt == 5) fail("127.0.0.1", "Its ports were taken by other programs, five times in a row.");
      }
    }
  } catch (const error& e) {
    auto detail = e.detail();
    detail.why += undo(place, record);
    throw error(e.code(), std::move(detail));
  } catch (...) {
    undo(place, record);
    throw;
  }
}

}  // namespace holdfast::local
