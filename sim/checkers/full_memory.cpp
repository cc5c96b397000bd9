// SPDX-License-Identifier: Apache-2.0
// H29: a full memory stops neither a release nor a renewal, nor a leave, a look of who is in line, a downgrade, or a
// break of one of several holders.
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace holdfast::sim {

namespace {

class full_memory final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    check_full_memory(run, [this](std::string what) { in().complain("H29", std::move(what)); });
  }
};

}  // namespace

void check_full_memory(const script_run& run, const complaint& complain) {
  const auto* error = run.reply->as_error();
  if (!error || !error->text.starts_with("OOM")) return;
  switch (run.which) {
    case script::id::release:
    case script::id::release_counted:
    case script::id::renew:
    case script::id::renew_counted:
    case script::id::leave:
    case script::id::leave_counted:
    case script::id::look:
    case script::id::look_counted:
    case script::id::downgrade:
    case script::id::break_counted:
      return complain(fmt::format("lock {}: {} was refused: {}", run.lock, script::find(run.which).name, error->text));
    default: return;
  }
}

std::unique_ptr<checker> make_full_memory(surroundings& in) { return std::make_unique<full_memory>(in); }

}  // namespace holdfast::sim
