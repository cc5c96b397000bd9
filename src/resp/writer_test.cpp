// SPDX-License-Identifier: Apache-2.0
#include "resp/writer.hpp"

#include "resp/reader.hpp"

#include <gtest/gtest.h>

#include <array>

namespace holdfast::resp {

namespace {

using namespace std::string_view_literals;

TEST(writer, writes_an_array_of_bulk_strings) {
  std::string out;
  append_request(out, std::array{"SET"sv, "k"sv, ""sv});
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

// H70: as an inline command this would be two; as a bulk string it is a value.
TEST(writer, line_ends_and_nul_in_a_word_stay_inside_it_H70) {
  std::string out;
  append_request(out, std::array{"y\r\nFLUSHALL\r\n\0"sv});
  EXPECT_EQ(out, "*1\r\n$14\r\ny\r\nFLUSHALL\r\n\0\r\n"sv);
}

TEST(writer, two_requests_in_one_buffer_are_a_pipeline) {
  std::string out;
  append_request(out, std::array{"PING"sv});
  append_request(out, std::array{"TIME"sv});
  EXPECT_EQ(out, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nTIME\r\n");
}

TEST(writer, the_pieces_make_the_same_bytes) {
  std::string whole;
  append_request(whole, std::array{"GET"sv, "k"sv});
  std::string pieces;
  append_header(pieces, 2);
  append_word(pieces, "GET");
  append_word(pieces, "k");
  EXPECT_EQ(pieces, whole);
}

TEST(writer, what_it_writes_the_reader_reads) {
  std::string out;
  append_request(out, std::array{"EVALSHA"sv, "\r\n$5\r\n"sv, ""sv});
  reader r;
  r.feed(out);
  EXPECT_EQ(r.next(), (value{value::array{std::string{"EVALSHA"}, std::string{"\r\n$5\r\n"}, std::string{}}}));
}

}  // namespace

}  // namespace holdfast::resp
