// SPDX-License-Identifier: Apache-2.0
// What came of the renewals, for the words of a loss: a server that refuses them is not one that is silent.
#pragma once

#include <holdfast/observer.hpp>

#include <mutex>
#include <string>
#include <system_error>

namespace holdfast::cli {

// Told on the client's callback thread, asked on any.
class renewal_news final : public observer {
public:
  void on_renewed(const std::string& name, std::chrono::microseconds margin) override;
  void on_renew_failed(const std::string& name, std::error_code code) override;

  // Why the renewals since the last good one failed; no error: none is known to have failed.
  std::error_code trouble() const;

private:
  mutable std::mutex mutex_{};
  std::error_code trouble_{};
};

}  // namespace holdfast::cli
