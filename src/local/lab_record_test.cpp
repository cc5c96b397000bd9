// SPDX-License-Identifier: Apache-2.0
// What a lab consists of, and that its record is believed as a whole or not at all.
#include "local/lab_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/error.hpp>

#include <numeric>

namespace holdfast::local {
namespace {

using testing::HasSubstr;

std::vector<int> ports(std::size_t count) {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), 10'001);
  return out;
}

lab_record made(lab_kind kind, int count = 0) {
  return {.kind = kind, .boot = "b007", .members = members_of(kind, count, ports(size_of(kind, count)))};
}

std::string refusal(lab_kind kind, int count) {
  try {
    size_of(kind, count);
    return {};
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_option);
    return e.detail().why;
  }
}

TEST(lab_record, has_the_servers_of_its_kind) {
  EXPECT_EQ(size_of(lab_kind::single, 0), 1u);
  EXPECT_EQ(size_of(lab_kind::replicas, 0), 3u);
  EXPECT_EQ(size_of(lab_kind::replicas, 8), 9u);
  EXPECT_EQ(size_of(lab_kind::sentinel, 0), 6u);
  EXPECT_EQ(size_of(lab_kind::cluster, 0), 6u);
  EXPECT_EQ(size_of(lab_kind::quorum, 0), 5u);
  EXPECT_EQ(size_of(lab_kind::quorum, 1), 1u);
}

TEST(lab_record, refuses_an_even_quorum_with_the_reason) {
  for (const int even : {2, 4, 6, 8}) EXPECT_THAT(refusal(lab_kind::quorum, even), HasSubstr("neither is a majority"));
}

TEST(lab_record, refuses_counts_out_of_range) {
  EXPECT_THAT(refusal(lab_kind::quorum, 11), HasSubstr("1 to 9"));
  EXPECT_THAT(refusal(lab_kind::quorum, -1), HasSubstr("1 to 9"));
  EXPECT_THAT(refusal(lab_kind::replicas, 9), HasSubstr("1 to 8"));
  for (const auto fixed : {lab_kind::single, lab_kind::sentinel, lab_kind::cluster})
    EXPECT_THAT(refusal(fixed, 3), HasSubstr("fixed"));
}

TEST(lab_record, uri_of_replicas_is_the_primary) {
  EXPECT_EQ(uri_of(made(lab_kind::single)), "redis://127.0.0.1:10001");
  EXPECT_EQ(uri_of(made(lab_kind::replicas)), "redis://127.0.0.1:10001");
}

TEST(lab_record, uri_of_a_sentinel_lab_names_the_sentinels_and_the_primary) {
  EXPECT_EQ(uri_of(made(lab_kind::sentinel)),
            "redis+sentinel://127.0.0.1:10004,127.0.0.1:10005,127.0.0.1:10006/mymaster");
}

TEST(lab_record, uri_of_a_quorum_or_a_cluster_names_all) {
  EXPECT_EQ(uri_of(made(lab_kind::quorum, 3)), "redis+quorum://127.0.0.1:10001,127.0.0.1:10002,127.0.0.1:10003");
  EXPECT_EQ(uri_of(made(lab_kind::cluster)),
            "redis+cluster://127.0.0.1:10001,127.0.0.1:10002,127.0.0.1:10003,127.0.0.1:10004,127.0.0.1:10005,"
            "127.0.0.1:10006");
}

TEST(lab_record, text_is_read_as_it_was_written) {
  for (const auto kind :
       {lab_kind::single, lab_kind::replicas, lab_kind::sentinel, lab_kind::cluster, lab_kind::quorum}) {
    auto lab = made(kind);
    lab.made_directory = kind == lab_kind::cluster;
    lab.persistent = kind == lab_kind::quorum;
    lab.members.back().pid = 4711;
    lab.members.back().started = 123'456'789'012;
    const auto read = parse_lab_record(to_text(lab));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, kind);
    EXPECT_EQ(read->boot, "b007");
    EXPECT_EQ(read->made_directory, lab.made_directory);
    EXPECT_EQ(read->persistent, lab.persistent);
    ASSERT_EQ(read->members.size(), lab.members.size());
    EXPECT_EQ(to_text(*read), to_text(lab));
  }
}

// Cut off anywhere, it is refused, or it is shorter by whole nodes: only a cut at the end of a line cannot be seen, and
// a record is replaced as a whole.
TEST(lab_record, cut_within_a_line_is_refused) {
  const auto text = to_text(made(lab_kind::sentinel));
  for (std::size_t length = 0; length < text.size(); ++length) {
    if (length > 0 && text[length - 1] == '\n') continue;
    EXPECT_FALSE(parse_lab_record(text.substr(0, length))) << text.substr(0, length);
  }
}

TEST(lab_record, with_anything_else_in_it_is_refused) {
  const std::string good = "holdfast-lab 1\nkind single\nboot b\npersistent no\nmade-directory yes\n";
  ASSERT_TRUE(parse_lab_record(good + "node 10001 primary 4711 99\n"));
  for (const char* bad :
       {"", "node 10001 primary -1 99\n", "node 10001 primary 1 99\n", "node 0 primary 4711 99\n",
        "node 70000 primary 4711 99\n", "node 10001 king 4711 99\n", "node 10001 primary 4711 -9\n",
        "node 10001 primary 4711 99 more\n", "node ../x primary 4711 99\n", "node 10001 primary 47x 99\n",
        "node 10001 primary 4711\n", "node 10001 primary 4711 99\nsomething else\n",
        "node 10001 primary 4711 99\npersistent maybe\n", "node 10001 primary 4711 99\nkind triangle\n"})
    EXPECT_FALSE(parse_lab_record(good + bad)) << bad;
  EXPECT_FALSE(parse_lab_record("holdfast-lab 2\n" + good.substr(15) + "node 10001 primary 4711 99\n"));
}

}  // namespace
}  // namespace holdfast::local
