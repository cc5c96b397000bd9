// SPDX-License-Identifier: Apache-2.0
// The forced unwind of pthread_cancel must not take a leader away with the lead in its hands (P32), nor meet what must
// not throw, which ends the program.
#pragma once

#include <pthread.h>

namespace holdfast::net {

class uncancelled {
public:
  uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~uncancelled() { pthread_setcancelstate(before_, nullptr); }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

private:
  int before_ = 0;
};

}  // namespace holdfast::net
