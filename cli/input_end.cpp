// SPDX-License-Identifier: Apache-2.0
#include "input_end.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>

namespace holdfast::cli {
namespace {

constexpr std::uint64_t more = 1;
constexpr std::uint64_t the_end = 2;

std::uint64_t read_some() {
  std::array<char, 4096> dropped{};
  const auto n = ::read(STDIN_FILENO, dropped.data(), dropped.size());
  return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) ? the_end : more;
}

void send(int fd, std::uint64_t what) { [[maybe_unused]] const auto written = ::write(fd, &what, sizeof what); }

std::uint64_t receive(int fd) {
  std::uint64_t what = 0;
  while (::read(fd, &what, sizeof what) < 0 && errno == EINTR) {
  }
  return what;
}

}  // namespace

struct input_end::shared {
  shared() {
    if (asked < 0 || done < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  }
  ~shared() {
    ::close(asked);
    ::close(done);
  }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;

  const int asked = ::eventfd(0, EFD_CLOEXEC);
  const int done = ::eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> is_over = false;
};

input_end::input_end() : shared_{std::make_shared<shared>()} {}

input_end::~input_end() {
  shared_->is_over = true;
  send(shared_->asked, 1);
}

void input_end::read() {
  if (!has_thread_) {
    std::thread{[with = shared_] {
      while (receive(with->asked) != 0 && !with->is_over) send(with->done, read_some());
    }}.detach();
    has_thread_ = true;
  }
  is_reading_ = true;
  send(shared_->asked, 1);
}

int input_end::descriptor() const noexcept { return shared_->done; }

bool input_end::take() {
  is_reading_ = false;
  return receive(shared_->done) == the_end;
}

}  // namespace holdfast::cli
