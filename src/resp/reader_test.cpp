// SPDX-License-Identifier: Apache-2.0
#include "resp/reader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace holdfast::resp {

namespace {

using namespace std::string_literals;
using array = value::array;

struct outcome {
  std::vector<value> values{};
  bool failed = false;
  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome read_all(reader& r) {
  outcome out;
  while (auto v = r.next()) out.values.push_back(*std::move(v));
  out.failed = !r.failure().empty();
  return out;
}

outcome read_all(std::string_view bytes, limits most = {}) {
  reader r{most};
  r.feed(bytes);
  return read_all(r);
}

// Feeds `bytes` cut before each of `cuts`.
outcome read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts, limits most = {}) {
  reader r{most};
  outcome out;
  std::size_t from = 0;
  const auto feed = [&](std::size_t to) {
    r.feed(bytes.substr(from, to - from));
    auto more = read_all(r);
    out.values.insert(out.values.end(), more.values.begin(), more.values.end());
    out.failed = more.failed;
    from = to;
  };
  for (const auto cut : cuts) feed(cut);
  feed(bytes.size());
  return out;
}

bool fails(std::string_view bytes, limits most = {}) { return read_all(bytes, most).failed; }

TEST(reader, reads_each_kind_of_reply) {
  const auto got = read_all("+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n");
  EXPECT_FALSE(got.failed);
  EXPECT_EQ(got.values, (std::vector<value>{status{"OK"}, server_error{"ERR no"}, std::int64_t{-42}, "a\r\nbc"s, ""s,
                                            nil{}, nil{}, array{}}));
}

// An array of one array, written out: from braces g++ and clang make different things.
value only(value element) {
  array one;
  one.push_back(std::move(element));
  return one;
}

// Behind HELLO and AUTH that is the password.
TEST(reader, forgets_what_a_server_repeats_of_a_request_that_it_does_not_know) {
  const auto got =
      read_all("-ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, `me`, `canary`, \r\n");
  EXPECT_EQ(got.values, (std::vector<value>{server_error{"ERR unknown command `HELLO`"}}));
}

TEST(reader, has_words_for_an_error_that_has_none) {
  EXPECT_EQ(read_all("-\r\n").values, (std::vector<value>{server_error{"an error without words"}}));
}

TEST(reader, reads_arrays_in_arrays) {
  const auto got = read_all("*3\r\n*2\r\n:1\r\n*0\r\n$1\r\nx\r\n*1\r\n*1\r\n$-1\r\n:7\r\n");
  EXPECT_EQ(got.values,
            (std::vector<value>{array{array{std::int64_t{1}, array{}}, "x"s, only(only(nil{}))}, std::int64_t{7}}));
}

TEST(reader, keeps_the_extremes_of_an_integer) {
  EXPECT_EQ(read_all(":9223372036854775807\r\n:-9223372036854775808\r\n").values,
            (std::vector<value>{std::int64_t{INT64_MAX}, std::int64_t{INT64_MIN}}));
}

TEST(reader, gives_nothing_while_bytes_are_missing) {
  reader r;
  r.feed("$5\r\nabc");
  EXPECT_EQ(r.next(), std::nullopt);
  EXPECT_TRUE(r.failure().empty());
  r.feed("de\r\n");
  EXPECT_EQ(r.next(), value{"abcde"s});
}

const std::string long_stream =
    "*3\r\n$16\r\n1795212800000042\r\n:2\r\n*2\r\n$-1\r\n+OK\r\n-NOSCRIPT No matching "
    "script.\r\n$6\r\n\r\n\r\n\r\n\r\n*0\r\n:5\r\n";

// The network cuts where it likes.
TEST(reader, every_single_cut_gives_the_same_values) {
  const auto whole = read_all(long_stream);
  ASSERT_EQ(whole.values.size(), 5u);
  for (std::size_t cut = 0; cut <= long_stream.size(); ++cut) {
    EXPECT_EQ(read_in_pieces(long_stream, {cut}), whole) << "cut at " << cut;
  }
}

TEST(reader, byte_by_byte_gives_the_same_values) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < long_stream.size(); ++i) cuts.push_back(i);
  EXPECT_EQ(read_in_pieces(long_stream, cuts), read_all(long_stream));
}

// Any bytes at all, made of the pieces that matter: the same values and the same verdict for any split.
TEST(reader, any_split_of_any_bytes_gives_the_same_values) {
  const limits small{.max_reply_bytes = 60, .max_elements = 4};
  const std::vector<std::string> pieces{"*",      "$",      "+",  "-",     ":",    "0",  "1",
                                        "2",      "5",      "99", "\r\n",  "\r\n", "ab", "$2\r\nab\r\n",
                                        "*2\r\n", ":1\r\n", "\r", "%1\r\n"};
  EXPECT_TRUE(rc::check([&] {
    std::string bytes;
    for (const auto i :
         *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, pieces.size()))) {
      bytes += pieces[i];
    }
    auto cuts = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    RC_ASSERT(read_in_pieces(bytes, cuts, small) == read_all(bytes, small));
  }));
}

TEST(reader, refuses_what_is_not_resp2) {
  for (const auto* bytes : {"HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x01\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "%1\r\n",
                            ">2\r\n", "~1\r\n", "(1\r\n", "=4\r\n", "!4\r\n"}) {
    EXPECT_TRUE(fails(bytes)) << bytes;
  }
}

TEST(reader, refuses_numbers_that_are_none) {
  for (const auto* bytes :
       {":\r\n", ":+1\r\n", ": 1\r\n", ":1 \r\n", ":1.0\r\n", ":9223372036854775808\r\n", "$-2\r\n", "$x\r\n",
        "$+1\r\n", "*-2\r\n", "*x\r\n", "*99999999999\r\n", "$99999999999999999999\r\n"}) {
    EXPECT_TRUE(fails(bytes)) << bytes;
  }
}

TEST(reader, refuses_a_bulk_string_that_ends_elsewhere) {
  EXPECT_TRUE(fails("$2\r\nabcd\r\n"));
  EXPECT_TRUE(fails("$2\r\nab\n\r"));
}

// A nesting beyond hiredis's stack must be an error, not memory of ours.
TEST(reader, refuses_arrays_nested_too_deep) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += "*1\r\n";
  EXPECT_TRUE(fails(bytes));
}

// CVE-2021-32765's class: a declared count must cost nothing.
TEST(reader, refuses_more_elements_than_the_limit_at_the_count) {
  EXPECT_TRUE(fails("*65537\r\n"));
  EXPECT_FALSE(fails("*65536\r\n"));
  EXPECT_TRUE(fails("*2147483647\r\n"));
}

TEST(reader, bounds_a_bulk_string_that_never_ends) {
  reader r{{.max_reply_bytes = 1000}};
  r.feed("$2000000000\r\n");
  for (int i = 0; i < 12 && r.failure().empty(); ++i) {
    EXPECT_EQ(r.next(), std::nullopt);
    r.feed(std::string(100, 'x'));
  }
  EXPECT_EQ(r.next(), std::nullopt);
  EXPECT_NE(r.failure().find("more bytes"), std::string::npos);
}

TEST(reader, bounds_an_array_of_small_elements_as_a_whole) {
  std::string bytes = "*300\r\n";
  for (int i = 0; i < 300; ++i) bytes += ":1\r\n";
  EXPECT_TRUE(fails(bytes, {.max_reply_bytes = 1000}));
  EXPECT_FALSE(fails(bytes, {.max_reply_bytes = 1206}));
}

TEST(reader, bounds_one_reply_not_a_pipeline_of_them) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += ":1\r\n";
  const auto got = read_all(bytes, {.max_reply_bytes = 10});
  EXPECT_FALSE(got.failed);
  EXPECT_EQ(got.values.size(), 300u);
}

TEST(reader, gives_what_came_before_a_violation_and_nothing_after) {
  reader r;
  r.feed(":1\r\n?\r\n:2\r\n");
  EXPECT_EQ(r.next(), value{std::int64_t{1}});
  EXPECT_EQ(r.next(), std::nullopt);
  EXPECT_FALSE(r.failure().empty());
  r.feed(":3\r\n");
  EXPECT_EQ(r.next(), std::nullopt);
}

TEST(reader, moves_with_half_a_reply_inside) {
  reader a;
  a.feed("*2\r\n:1\r\n");
  EXPECT_EQ(a.next(), std::nullopt);
  reader b{std::move(a)};
  b.feed(":2\r\n");
  EXPECT_EQ(b.next(), (value{array{std::int64_t{1}, std::int64_t{2}}}));
}

}  // namespace

}  // namespace holdfast::resp
