// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

extern char** environ;

namespace holdfast::test {
namespace {

std::vector<std::string> environment_with(const std::vector<std::string>& over) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string existing{*entry};
    const auto name = existing.substr(0, existing.find('=') + 1);
    bool replaced = false;
    for (const auto& o : over) replaced = replaced || o.starts_with(name);
    if (!replaced) all.push_back(existing);
  }
  all.insert(all.end(), over.begin(), over.end());
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

child_process::child_process(const std::vector<std::string>& command, const options& how) {
  auto words = command;
  auto environment = environment_with(how.environment);
  const auto argv = pointers(words);
  const auto envp = pointers(environment);
  std::array<int, 2> in{-1, -1}, out{-1, -1};
  if (how.pipes && (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)) return;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    if (how.pipes) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
    }
    if (!how.log_file.empty()) {
      const int log = ::open(how.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (!how.pipes) ::dup2(log, 1);
      ::dup2(log, 2);
    }
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  if (how.pipes) {
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
}

child_process::~child_process() { forget(); }

child_process::child_process(child_process&& other) noexcept { *this = std::move(other); }

child_process& child_process::operator=(child_process&& other) noexcept {
  if (this == &other) return *this;
  forget();
  pid_ = std::exchange(other.pid_, 0);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  unread_ = std::move(other.unread_);
  status_ = std::exchange(other.status_, std::nullopt);
  return *this;
}

void child_process::forget() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::kill(pid_, SIGCONT);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (input_ >= 0) ::close(input_);
  if (output_ >= 0) ::close(output_);
  pid_ = 0;
  input_ = output_ = -1;
}

bool child_process::running() { return pid_ > 0 && !wait(0ms); }

void child_process::signal(int number) const {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

std::optional<std::string> child_process::read_line(std::chrono::milliseconds patience) {
  const auto give_up_at = boottime() + patience;
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      auto line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime()).count();
    pollfd readable{output_, POLLIN, 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0) return std::nullopt;
    std::array<char, 4096> bytes;
    const auto count = ::read(output_, bytes.data(), bytes.size());
    if (count <= 0) return std::nullopt;
    unread_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void child_process::write_line(const std::string& line) {
  const auto bytes = line + "\n";
  [[maybe_unused]] const auto written = ::write(input_, bytes.data(), bytes.size());
}

void child_process::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

std::optional<int> child_process::wait(std::chrono::milliseconds patience) {
  if (status_ || pid_ <= 0) return status_;
  eventually(
      [&] {
        int status = 0;
        if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
        return status_.has_value();
      },
      patience);
  return status_;
}

}  // namespace holdfast::test
