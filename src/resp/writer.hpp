// SPDX-License-Identifier: Apache-2.0
// Values to bytes: a request is always an array of bulk strings, never an inline command (H70).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::resp {

// Appends to `out`; several requests appended to one buffer are a pipeline.
void append_request(std::string& out, std::span<const std::string_view> words);

// The same in pieces, for callers that would otherwise build an array of words first: the header with the number of
// words, then exactly that many words.
void append_header(std::string& out, std::size_t words);
void append_word(std::string& out, std::string_view word);

}  // namespace holdfast::resp
