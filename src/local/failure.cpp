// SPDX-License-Identifier: Apache-2.0
#include "local/failure.hpp"

#include <holdfast/error.hpp>

#include <system_error>
#include <utility>

namespace holdfast::local {

void fail(std::string_view subject, std::string why, std::string server_text) {
  error_detail detail;
  detail.endpoint = "local:";
  detail.subject = subject;
  detail.why = std::move(why);
  detail.server_text = std::move(server_text);
  throw error(errc::local_server, std::move(detail));
}

void fail_with_errno(std::string_view subject, std::string why, int error_number) {
  fail(subject, std::move(why), std::generic_category().message(error_number));
}

}  // namespace holdfast::local
