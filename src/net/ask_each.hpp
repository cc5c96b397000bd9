// SPDX-License-Identifier: Apache-2.0
// One question to several servers at once, each over a connection of its own: for whoever asks once, and waits.
#pragma once

#include "net/asked_line.hpp"
#include "net/wait_for.hpp"

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace holdfast::net {

template <class Talk>
using asked_lines = std::vector<std::unique_ptr<asked_line<Talk>>>;

// Their answers, in the order of the lines. Empty: there was none by `until`.
template <class Talk>
std::vector<std::optional<typename Talk::answer_type>> ask_each(const asked_lines<Talk>& lines, time_point until) {
  for (const auto& one : lines) one->ask();
  const auto is_done = [](const auto& one) { return one->answer().has_value(); };
  while (boottime_now() < until && !std::all_of(lines.begin(), lines.end(), is_done)) {
    std::vector<pollfd> fds;
    fds.reserve(lines.size());
    for (const auto& one : lines) fds.push_back(one->poll_for());
    wait_for(fds, until);
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i]->collect(fds[i].revents);
  }
  std::vector<std::optional<typename Talk::answer_type>> answers;
  answers.reserve(lines.size());
  for (const auto& one : lines) answers.push_back(one->answer());
  return answers;
}

}  // namespace holdfast::net
