// SPDX-License-Identifier: Apache-2.0
// E08: an option that is out of its range, or that makes no sense beside another. The way out is one that works when it
// is followed.
#include "message.hpp"
#include "option_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace holdfast::cli;
using holdfast::errc;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

fault option_fault(holdfast::error_detail detail, const fault_context& context = {}) {
  return describe(holdfast::error{errc::invalid_option, std::move(detail)}, context);
}

std::string shown(holdfast::error_detail detail) { return to_text(option_fault(std::move(detail))); }

// Who typed 100 and meant milliseconds sees what it was read as.
TEST(E08, says_what_was_read_and_what_to_write) {
  const auto text = shown({.subject = "ttl = 100000 ms", .why = "it must be 100 to 60000 ms"});
  EXPECT_THAT(text, HasSubstr("error[E08]: --ttl 1m40s is out of its range\n  why: it must be 100ms to 1m00s\n"));
  EXPECT_THAT(text, HasSubstr("fix: --ttl 10s, say, or 500ms; a plain number is seconds"));
  // Shown as 1m00s it would seem to be in its range.
  EXPECT_THAT(shown({.subject = "ttl = 60001 ms", .why = "it must be 100 to 60000 ms"}),
              HasSubstr("--ttl 60001 ms is out of its range\n  why: it must be 100ms to 1m00s\n"));
}

TEST(E08, names_no_range_where_the_servers_answers_are_slow) {
  const auto text = shown({.endpoint = "redis://h:1",
                           .subject = "ttl 100 ms",
                           .why = "the server's answers take 120 ms, so that each grant is over"});
  EXPECT_THAT(text, HasSubstr("--ttl 100ms is too short for redis://h:1\n  why: the server's answers take 120ms, so"));
  EXPECT_THAT(text, HasSubstr("fix: a longer --ttl; holdfast doctor says which"));
}

TEST(E08, of_each_duration_says_how_it_is_written) {
  for (const auto* field : {"ttl", "wait", "max_hold", "timeout", "max_ttl", "durability.timeout", "ready_within"}) {
    const auto what = option_fault({.subject = std::string{field} + " = 0 ms", .why = "it must"});
    EXPECT_THAT(what.fix, HasSubstr("a plain number is seconds")) << field;
    EXPECT_THAT(what.text, StartsWith("--")) << field;
  }
}

TEST(E08, of_a_file_is_not_a_matter_of_a_range) {
  const auto text = shown({.subject = "cacert 'nosuch'", .why = "No such file or directory"});
  EXPECT_THAT(text, AllOf(HasSubstr("--cacert 'nosuch' cannot be used"), Not(HasSubstr("range"))));
}

// With --max-ttl 5s and the ttl that nobody typed, the example would be refused as well.
TEST(E08, proposes_what_is_in_the_range) {
  const auto fix = [](const char* subject, const char* why) {
    return option_fault({.subject = subject, .why = why}).fix;
  };
  EXPECT_THAT(fix("ttl = 10000 ms", "it must be 100 to 5000 ms"), StartsWith("--ttl 5s or less; a plain number is"));
  EXPECT_THAT(fix("ttl = 10 ms", "it must be 100 to 5000 ms"), StartsWith("--ttl 100ms or more; a plain number is"));
  EXPECT_THAT(fix("ttl = 10000 ms", "with replicas it must be 20000 ms or more, four times durability.timeout"),
              StartsWith("--ttl 20s or more; "));
  EXPECT_THAT(fix("durability.timeout = 100 ms", "it must be 1 to 75 ms"),
              StartsWith("--replicas-timeout 75ms or less"));
  EXPECT_THAT(fix("ttl = 70000 ms", "it must be 100 to 6543 ms"), StartsWith("--ttl 6543ms or less; "));
  EXPECT_THAT(fix("ttl = 70000 ms", "it must be 100 to 60000 ms"), StartsWith("--ttl 10s, say, "));
}

// Another file would be refused like the first, and so would the next of those that were given.
TEST(E08, of_tls_files_without_tls_says_which_to_leave_out) {
  constexpr auto why = "it is for TLS, and the URI's scheme is one without: write rediss: for redis:";
  const auto fix = [&](std::string_view uri, const server_files& files) {
    return option_fault({.subject = "cacert '/ca.pem'", .why = why}, {.uri = uri, .files = files}).fix;
  };
  const server_files all{.cacert = "/ca.pem", .cert = "/me.pem", .key = "/me.key"};
  EXPECT_EQ(fix("redis://db1", {.cacert = "/ca.pem"}),
            "leave --cacert out; or, if that port speaks TLS, write rediss: for redis: in the URI");
  EXPECT_THAT(fix("redis+quorum://a,b,c", all), StartsWith("leave --cacert, --cert, --key out; or, "));
  for (const auto* uri : {"", "local:", "redis+unix:///s"})
    EXPECT_EQ(fix(uri, all), "leave --cacert, --cert, --key out");
}

TEST(E08, of_a_key_with_a_pass_phrase_says_how_to_make_one_without) {
  const auto of = [](const char* subject, const server_files& files) {
    const auto what = option_fault({.subject = subject,
                                    .why = "cannot use private key 'x': it is encrypted, and holdfast takes no pass "
                                           "phrase; `openssl pkey -in FILE -out DECRYPTED` makes one that is not"},
                                   {.files = files});
    return what.text + ": " + what.fix;
  };
  EXPECT_EQ(of("key '/my key'", {.cert = "/me.pem", .key = "/my key"}),
            "--key '/my key' cannot be used: openssl pkey -in '/my key' -out NEW; and --key NEW");
  EXPECT_EQ(of("key '/me.pem'", {.cert = "/me.pem"}),
            "the key in --cert '/me.pem' cannot be used: openssl pkey -in /me.pem -out NEW; and --key NEW");
  EXPECT_EQ(of("key '/me.key'", {}),
            "the URI's key '/me.key' cannot be used: openssl pkey -in /me.key -out NEW; and &key=NEW in the URI");
}

TEST(E08, of_what_excludes_each_other_says_what_to_leave_out) {
  const auto of = [](const char* subject) {
    const auto what = option_fault({.subject = subject, .why = "w"});
    return what.text + ": " + what.fix;
  };
  EXPECT_EQ(of("plain naming, with a quorum"), "--plain cannot be had with a quorum: leave --plain out");
  EXPECT_EQ(of("plain naming, with -l"), "--plain cannot be had with -l: leave --plain out, or -l");
  EXPECT_EQ(of("quarantine off, with a quorum"),
            "--trust-every-write-is-synced cannot be had with a quorum: leave --trust-every-write-is-synced out");
  EXPECT_EQ(of("durability.replicas = 2, with a quorum"),
            "--replicas 2 cannot be had with a quorum: leave --replicas out, and --replicas-timeout");
}

// Each reason is one, and no second way out.
TEST(E08, gives_the_way_out_once) {
  const auto of = [](const char* subject, const char* why) {
    const auto what = option_fault({.subject = subject, .why = why});
    return what.why + ": " + what.fix;
  };
  EXPECT_EQ(of("quarantine off, with a quorum", "two could each have a majority; leave it on"),
            "two could each have a majority: leave --trust-every-write-is-synced out");
  EXPECT_EQ(of("resize of 'x' to 2 on a quorum", "one too many; let all give it back, and resize it alone"),
            "one too many: let all give it back, and resize it on each server alone: --uri redis://HOST:PORT for each");
}

// What the doctor says, too.
TEST(words_of_options, stand_for_those_of_the_library) {
  EXPECT_EQ(in_words_of_options("CONFIG SET repl-backlog-ttl 61, or a smaller max_ttl"),
            "CONFIG SET repl-backlog-ttl 61, or a smaller --max-ttl, the same on every client");
  EXPECT_EQ(in_words_of_options("use a ttl of 1100 ms or more"), "use a --ttl of 1100 ms or more");
  EXPECT_EQ(in_words_of_options("delete that key, or another prefix"), "delete that key, or another --prefix");
  EXPECT_EQ(in_words_of_options("CONFIG SET appendfsync always; or leave the quarantine on"),
            "CONFIG SET appendfsync always; or leave --trust-every-write-is-synced out");
  EXPECT_EQ(in_words_of_options("a longer durability.timeout, or fewer durability.replicas"),
            "a longer --replicas-timeout, or fewer --replicas");
}

}  // namespace
