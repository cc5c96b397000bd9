// SPDX-License-Identifier: Apache-2.0
#include "renewal_news.hpp"

namespace holdfast::cli {

void renewal_news::on_renewed(const std::string& /*name*/, std::chrono::microseconds /*margin*/) {
  const std::lock_guard held{mutex_};
  trouble_.clear();
}

void renewal_news::on_renew_failed(const std::string& /*name*/, std::error_code code) {
  const std::lock_guard held{mutex_};
  trouble_ = code;
}

std::error_code renewal_news::trouble() const {
  const std::lock_guard held{mutex_};
  return trouble_;
}

}  // namespace holdfast::cli
