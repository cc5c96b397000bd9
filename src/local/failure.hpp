// SPDX-License-Identifier: Apache-2.0
// The one way in which this room fails: errc::local_server with a sentence that says what to do.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::local {

// `subject` is the directory or file that was wrong, `why` one sentence with the way out.
[[noreturn]] void fail(std::string_view subject, std::string why, std::string server_text = {});

// The same, with the words of the system for `error_number`.
[[noreturn]] void fail_with_errno(std::string_view subject, std::string why, int error_number);

}  // namespace holdfast::local
