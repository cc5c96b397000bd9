// SPDX-License-Identifier: Apache-2.0
// A program that a test starts, talks to by lines, signals by its pid and always reaps. Ends with the test process,
// however that ends.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

class child_process {
public:
  struct options {
    std::vector<std::string> environment{};  // "NAME=value", over ours.
    std::string log_file{};                  // Standard error, and output if not piped, go here. Empty: ours.
    bool pipes = true;                       // Talk over standard input and output.
  };

  child_process() = default;
  explicit child_process(const std::vector<std::string>& command) : child_process{command, options{}} {}
  child_process(const std::vector<std::string>& command, const options& how);
  ~child_process();  // SIGKILL if it still runs.
  child_process(child_process&&) noexcept;
  child_process& operator=(child_process&&) noexcept;

  int pid() const { return pid_; }
  bool running();
  void signal(int number) const;

  // The next line of its standard output; nullopt at the deadline or at its end.
  std::optional<std::string> read_line(std::chrono::milliseconds patience = std::chrono::seconds{20});

  // One line to its standard input.
  void write_line(const std::string& line);
  void close_input();

  // Its status as of waitpid(2); nullopt when it still runs at the deadline.
  std::optional<int> wait(std::chrono::milliseconds patience = std::chrono::seconds{30});

private:
  void forget();

  int pid_ = 0;
  int input_ = -1;
  int output_ = -1;
  std::string unread_{};
  std::optional<int> status_{};
};

}  // namespace holdfast::test
