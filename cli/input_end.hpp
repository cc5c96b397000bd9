// SPDX-License-Identifier: Apache-2.0
// The end of our input, for a loop that must never block. Another reader of the same input may take what poll(2) has
// announced, and then a read waits; O_NONBLOCK would be that reader's, too. So a thread of its own reads.
#pragma once

#include <memory>

namespace holdfast::cli {

class input_end {
public:
  input_end();
  ~input_end();
  input_end(const input_end&) = delete;
  input_end& operator=(const input_end&) = delete;

  // Starts one read, of which is_reading() is true until take(). What comes is dropped.
  void read();
  bool is_reading() const noexcept { return is_reading_; }

  // Readable when the read is done.
  int descriptor() const noexcept;

  // After that: true when it was the end.
  bool take();

private:
  struct shared;

  std::shared_ptr<shared> shared_;  // The thread's too: it may be in its read when we are gone.
  bool has_thread_ = false;
  bool is_reading_ = false;
};

}  // namespace holdfast::cli
