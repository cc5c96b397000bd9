// SPDX-License-Identifier: Apache-2.0
#include "local/launch.hpp"

#include "local/as_server_user.hpp"
#include "local/descriptor.hpp"
#include "local/failure.hpp"
#include "local/plain_file.hpp"
#include "local/server_lock.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace holdfast::local {
namespace {

// Everything the child needs, made before the fork: between fork and exec nothing may allocate.
struct program {
  std::vector<std::string> words;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::string path_variable;
  int log_fd = -1;
  int null_fd = -1;
  const char* locked_directory = nullptr;
  const char* kept_directory = nullptr;
  mode_t umask_bits = 0077;
  std::optional<user_and_group> run_as;
};

std::vector<std::string> arguments(const std::string& executable, const place& where) {
  return {executable,
          "--port",
          "0",
          "--unixsocket",
          where.socket(),
          "--unixsocketperm",
          where.shared ? "660" : "600",
          "--dir",
          where.directory,
          "--appendonly",
          "yes",
          "--appendfsync",
          "everysec",
          "--save",
          "",
          "--maxmemory-policy",
          "noeviction",
          "--daemonize",
          "no",
          "--pidfile",
          "",
          "--logfile",
          ""};
}

// What the child says through a pipe: its pid, then nothing (exec closes the pipe) or an errno, and what failed.
struct report {
  int pid;
  int error_number;
  bool is_of_lock;
  bool is_known = true;  // False: who was to tell us did not.
};

// A descriptor that is there already keeps its FD_CLOEXEC over dup2: so it is when we run with stdio closed.
void put(int fd, int place) {
  if (fd == place) {
    ::fcntl(place, F_SETFD, 0);
  } else {
    ::dup2(fd, place);
  }
}

// The server is for all who come, and what its first caller was limited to (ulimit) is not for them: a limit of the
// size of files, say, would end it in some hours. A hard limit, as `ulimit` without -S sets it, only root can lift; it
// stays with descriptors, of which the system knows how many there may be.
void lift_limits() {
  constexpr rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  for (const auto which : {RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE}) {
    if (which != RLIMIT_NOFILE && ::setrlimit(which, &none) == 0) continue;
    rlimit limit{};
    if (::getrlimit(which, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(which, &limit);
  }
}

// A sandbox may refuse close_range(2), and Linux has it from 5.9 on only.
void close_all_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0u, 0) == 0) return;
  constexpr rlim_t most = 65'536;
  rlimit limit{};
  const auto end = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_max, most) : most;
  for (int fd = first; fd < static_cast<int>(end); ++fd) ::close(fd);
}

// `ionice -c3`, or a low level of those who share the disk. glibc has no functions for it.
void lift_disk_priority() {
  constexpr int one_process = 1, shared_class = 2, idle_class = 3, class_shift = 13, usual_level = 4;
  const long priority = ::syscall(SYS_ioprio_get, one_process, 0);
  if (priority < 0) return;
  const long its_class = priority >> class_shift, level = priority & 7;
  const bool is_low = its_class == idle_class || (its_class == shared_class && level > usual_level);
  if (is_low) ::syscall(SYS_ioprio_set, one_process, 0, 0);
}

// Nor is the processor that its first caller was bound to (`taskset`), for whom it would wait there. Which of them
// there are, and may be used, the kernel knows.
void lift_affinity() {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  ::sched_setaffinity(0, sizeof all, &all);
}

// Nor are its first caller's low priorities: the kernel would end it, with everybody's locks, in that one's place, or
// let it wait for the processor and the disk while they wait for it. A high one was given on purpose. As far as we may:
// a user gets rid of the disk's and of SCHED_BATCH, root of all.
void lift_priorities() {
  const int policy = ::sched_getscheduler(0);
  const sched_param none{};
  if (policy == SCHED_IDLE || policy == SCHED_BATCH) ::sched_setscheduler(0, SCHED_OTHER, &none);
  if (::getpriority(PRIO_PROCESS, 0) > 0) ::setpriority(PRIO_PROCESS, 0, 0);
  lift_disk_priority();
  const int file = ::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 8> text{};
  const bool is_low = ::read(file, text.data(), text.size()) > 0 && text.front() != '-' && text.front() != '0';
  [[maybe_unused]] const auto done = is_low ? ::pwrite(file, "0", 1, 0) : 0;
  ::close(file);
}

// 0, or what failed.
int become(const user_and_group& who) {
  const bool is_done = ::setgroups(1, &who.group) == 0 && ::setgid(who.group) == 0 && ::setuid(who.user) == 0;
  return is_done ? 0 : errno;
}

[[noreturn]] void become_server(const program& what, int report_fd) {
  const report started{::getpid(), 0, false};
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) ::signal(signal_number, SIG_DFL);
  ::umask(what.umask_bits);
  put(what.null_fd, 0);
  put(what.log_fd, 1);
  put(what.log_fd, 2);
  // The report goes to 3 and everything above is closed, so the daemon keeps no file, socket or lock of ours.
  if (report_fd != 3) ::dup2(report_fd, 3);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  close_all_from(4);
  [[maybe_unused]] auto told = ::write(3, &started, sizeof started);
  report failed{started.pid, 0, true};
  if (what.locked_directory != nullptr) failed.error_number = lock_for_life(what.locked_directory);
  if (failed.error_number == 0) {
    if (what.kept_directory != nullptr) keep_from_cleaners(what.kept_directory);
    be_ourselves_again();
    lift_limits();
    lift_priorities();
    lift_affinity();
    const int refusal = what.run_as ? become(*what.run_as) : 0;
    if (refusal == 0) ::execve(what.argv[0], what.argv.data(), what.environment.data());
    failed = {started.pid, refusal != 0 ? refusal : errno, false};
  }
  told = ::write(3, &failed, sizeof failed);
  ::_exit(127);
}

// What became of the daemon of our child, for its parent: as soon as that has all the reports there will be.
report started_by_child(const program& what) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return {0, errno, false};
  const pid_t daemon = ::fork();
  if (daemon == 0) become_server(what, pipe_ends[1]);
  if (daemon < 0) return {0, errno, false};
  ::close(pipe_ends[1]);
  report last{0, EIO, false};
  report next{};
  for (;;) {
    const auto count = ::read(pipe_ends[0], &next, sizeof next);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof next) return last;
    last = next;
  }
}

// Our child makes a session and forks again, so that the server is no session leader, has no terminal and is adopted by
// init; SIGHUP of our terminal and our own end do not reach it. The child reads the server's reports to the end, which
// comes when the server is run: the child has no other thread. Of ours another one may fork meanwhile, and that process
// keep open what we have for as long as it lives; so we wait for the child's end, and for no pipe's.
report start_daemon(const program& what) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {0, errno, false};
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const auto last = started_by_child(what);
    const auto told = ::write(pipe_ends[1], &last, sizeof last);
    ::_exit(told == sizeof last ? 0 : 1);
  }
  report last{0, child < 0 ? errno : EIO, false, child < 0};
  ::close(pipe_ends[1]);
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  report told{};
  if (child > 0 && ::read(pipe_ends[0], &told, sizeof told) == sizeof told) last = told;
  ::close(pipe_ends[0]);
  return last;
}

bool is_program(const std::string& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 && S_ISREG(seen.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(std::string_view name, std::string_view search_path) {
  std::string places{search_path};
  places += ":/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";
  for (std::size_t begin = 0; begin <= places.size();) {
    const auto end = std::min(places.find(':', begin), places.size());
    const auto directory = places.substr(begin, end - begin);
    begin = end + 1;
    // An empty or relative entry of PATH would run whatever lies in the current directory.
    if (!directory.starts_with('/')) continue;
    if (auto path = directory + "/" + std::string{name}; is_program(path)) return path;
  }
  return {};
}

std::string find_server() {
  const char* search_path = std::getenv("PATH");
  auto executable = find_program("redis-server", search_path != nullptr ? search_path : "");
  if (executable.empty()) {
    fail("redis-server",
         "It is not installed (looked in PATH, /usr/bin and /usr/sbin): apt-get install redis-server; "
         "or name a server that runs elsewhere with HOLDFAST_URI.");
  }
  return executable;
}

int launch(const daemon_plan& plan) {
  program what;
  what.words = plan.words;
  for (auto& word : what.words) what.argv.push_back(word.data());
  what.argv.push_back(nullptr);
  // An environment of its own: ours may hold secrets, and nothing of it is the server's business.
  what.path_variable = "PATH=/usr/bin:/usr/sbin:/bin:/sbin";
  what.environment = {what.path_variable.data(), nullptr};
  what.umask_bits = plan.shared ? 0007 : 0077;
  const mode_t mode = plan.shared ? 0660 : 0600;
  const descriptor null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  if (!null.is_open()) fail_with_errno("/dev/null", "It cannot be opened.", errno);
  const auto log = open_or_make_plain(plan.log_file, O_WRONLY | O_APPEND, mode);
  if (!log.is_open()) fail_with_errno(plan.log_file, "The server's log cannot be opened.", errno);
  what.null_fd = null.get();
  what.log_fd = log.get();
  what.run_as = plan.run_as;
  if (!plan.locked_directory.empty()) what.locked_directory = plan.locked_directory.c_str();
  if (!plan.kept_directory.empty()) what.kept_directory = plan.kept_directory.c_str();
  const auto result = start_daemon(what);
  if (result.is_of_lock && result.error_number == EWOULDBLOCK) throw directory_taken{};
  if (result.is_of_lock && result.error_number != 0)
    fail_with_errno(plan.locked_directory, "No server is run in it: it cannot be locked.", result.error_number);
  if (!result.is_known)
    throw may_be_run{errc::local_server,
                     {.endpoint = "local:",
                      .subject = plan.words.front(),
                      .why = "It may run, or not: who was to tell was killed."}};
  if (result.error_number != 0) fail_with_errno(plan.words.front(), "It cannot be run.", result.error_number);
  return result.pid;
}

int launch(const std::string& program, const place& where) {
  return launch({.words = arguments(program, where),
                 .log_file = where.log_file(),
                 .shared = where.shared,
                 .locked_directory = where.directory,
                 .run_as = where.server_user() == ::geteuid()
                               ? std::nullopt
                               : std::optional{user_and_group{where.server_user(), where.group}}});
}

std::size_t length_of(const std::string& log_file) {
  struct stat seen {};
  return ::stat(log_file.c_str(), &seen) == 0 ? static_cast<std::size_t>(seen.st_size) : 0;
}

std::string last_line(const std::string& log_file, std::size_t before) {
  auto text = text_or_nothing(log_file);
  std::istringstream log{text.erase(0, before)};
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace holdfast::local
