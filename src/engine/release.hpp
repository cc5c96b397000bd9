// SPDX-License-Identifier: Apache-2.0
// One release on a connection: core's decisions turned into requests, the server's words into answers.
#pragma once

#include "core/release_call.hpp"
#include "engine/call.hpp"
#include "script/keys.hpp"

#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

namespace holdfast::engine {

class release final : public call {
public:
  release(channel& to, script::lock_keys keys, owner_id owner, fencing_token token, time_point lease_deadline,
          time_point give_up_at);

  void step(time_point now) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  time_point wake_at() const override { return flow_.wake_at(to().takes_back()); }
  bool is_over() const override { return flow_.end().has_value(); }
  bool gives_back() const override { return true; }
  void on_left(time_point /*now*/) override { flow_.on_cut(); }

  release_outcome end() const { return *flow_.end(); }

private:
  script::lock_keys keys_;
  owner_id owner_;
  fencing_token token_;
  core::release_call flow_;
};

}  // namespace holdfast::engine
