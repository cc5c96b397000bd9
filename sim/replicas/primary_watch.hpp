// SPDX-License-Identifier: Apache-2.0
// How a process finds the primary: as src/net/sentinel_watch.cpp, which asks the sentinels for whoever wants to connect
// and again and again, so that engine/named_primary.hpp knows what a grant is worth.
#pragma once

#include "replicas/sentinels.hpp"
#include "watch.hpp"

#include "engine/named_primary.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::sim {

class primary_watch final : public watch {
public:
  primary_watch(event_queue& events, const sentinels& whom, const settings& what, seeded_random rng, hooks how,
                std::function<void()> on_change);

  struct found {
    int server = 0;
    engine::named_primary::term_number term = 0;  // 0: nobody is named.
  };
  // Tells it once; now, if they were asked not long ago.
  void find(std::function<void(const found&)> whom);
  std::shared_ptr<const engine::named_primary> primary() const { return named_; }

private:
  struct answer {
    std::size_t sentinel;
    instant given_at;
    instant comes_at;  // Or the asker's patience is over.
    bool is_given;
  };
  using round = std::array<answer, sentinels::count>;  // In the order in which they come.

  void begin_round() override;
  // When so many of them have come.
  void read(const round& answers, std::size_t count);
  void end_round(found result);

  const sentinels* whom_;
  std::function<void()> on_change_;
  std::shared_ptr<engine::named_primary> named_;
  std::vector<std::function<void(const found&)>> waiting_{};
  std::vector<std::function<void(const found&)>> asking_for_{};
  found last_{};
  time_point last_at_{};
};

}  // namespace holdfast::sim
