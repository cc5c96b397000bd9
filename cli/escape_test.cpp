// SPDX-License-Identifier: Apache-2.0
// H70: names and labels come from elsewhere, and a terminal obeys.
#include "escape.hpp"
#include "suggest.hpp"
#include "uri.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::cli;

TEST(visible, leaves_printable_text_alone) {
  EXPECT_EQ(visible("jobs/Ünïcode ✓ \U0001f512"), "jobs/Ünïcode ✓ \U0001f512");
}

TEST(visible, shows_c0_c1_del_and_escape_as_bytes) {
  EXPECT_EQ(visible("a\x1b[2J\n\t\x7f"), "a\\x1b[2J\\x0a\\x09\\x7f");
  EXPECT_EQ(visible("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(visible, shows_direction_overrides_and_line_separators) {
  EXPECT_EQ(visible("\u202e"), "\\xe2\\x80\\xae");
  EXPECT_EQ(visible("\u2028"), "\\xe2\\x80\\xa8");
}

TEST(visible, shows_what_is_not_utf8) {
  EXPECT_EQ(visible("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");
  EXPECT_EQ(visible("\xe2\x82"), "\\xe2\\x82");           // Cut short.
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // A surrogate.
  EXPECT_EQ(visible(std::string_view{"a\0b", 3}), "a\\x00b");
}

TEST(shell_quoted, quotes_only_where_a_shell_would_see_something_else) {
  EXPECT_EQ(shell_quoted("jobs/nightly:1"), "jobs/nightly:1");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("-n"), "'-n'");
}

// Quoted or not, it would be read as an option.
TEST(name_argument, puts_a_name_that_begins_with_a_dash_behind_two) {
  EXPECT_EQ(name_argument("-x"), "-- '-x'");
  EXPECT_EQ(name_argument("x-"), "x-");
  EXPECT_EQ(name_argument("a b"), "'a b'");
}

// Copied, 'a\x0ab' would be another lock.
TEST(name_argument, is_a_word_for_it_where_nobody_could_copy_it) {
  for (const auto& name : {std::string{"a\nb"}, std::string{"\xff"}, std::string(513, 'n')})
    EXPECT_EQ(name_argument(name), "NAME") << name;
  EXPECT_EQ(name_argument(std::string(512, 'n')), std::string(512, 'n'));
}

TEST(lock_argument, has_the_options_without_which_the_name_is_another_lock) {
  EXPECT_EQ(lock_argument({.name = "x"}), "x");
  EXPECT_EQ(lock_argument({.name = "-x", .plain = true}), "--plain -- '-x'");
  EXPECT_EQ(lock_argument({.name = "x", .at = {.prefix = "a$b:"}}), "--prefix 'a$b:' x");
  EXPECT_EQ(lock_argument({.name = "x", .at = {.uri = "redis://db1", .prefix = "b:"}, .plain = true}),
            "--plain --uri redis://db1 --prefix b: x");
}

TEST(server_argument, has_the_options_without_which_it_is_another_server) {
  EXPECT_EQ(server_argument(server_words{}), "");
  EXPECT_EQ(server_argument(server_words{.prefix = "b:"}), " --prefix b:");
  EXPECT_EQ(server_argument(server_words{.uri = "redis+quorum://a,b,c?generation=2"}),
            " --uri 'redis+quorum://a,b,c?generation=2'");
  EXPECT_EQ(server_argument(server_words{.uri = "local:/a@b", .prefix = "a$b:"}), " --uri local:/a@b --prefix 'a$b:'");
}

// Without them the server would not let us in.
TEST(server_argument, has_the_files_that_were_named) {
  EXPECT_EQ(server_argument(server_words{.uri = "rediss://db1", .files = {.cacert = "/my ca.pem"}}),
            " --uri rediss://db1 --cacert '/my ca.pem'");
  EXPECT_EQ(server_argument(server_words{
                .prefix = "b:", .files = {.password = "pw", .cacert = "ca.pem", .cert = "me.pem", .key = "me.key"}}),
            " --password-file pw --cacert ca.pem --cert me.pem --key me.key --prefix b:");
  EXPECT_EQ(lock_argument({.name = "x", .at = {.files = {.cert = "me.pem"}}, .plain = true}),
            "--plain --cert me.pem x");
}

// run --password-file <(pass show db1)
TEST(server_argument, has_no_file_that_is_there_for_this_process_alone) {
  for (const auto* path : {"/dev/fd/63", "/proc/self/fd/3", "/dev/stdin", "a\nb"})
    EXPECT_EQ(server_argument(server_words{.files = {.password = path}}), " --password-file FILE") << path;
}

TEST(server_argument, has_nothing_of_a_uri_that_may_have_a_password) {
  for (const char* uri : {"redis://me:canary@db1", "redis://me@db1", "redis://db1?password=canary",
                          "redis://default:canary", "default:canary"}) {
    EXPECT_EQ(server_argument(server_words{.uri = uri}), " --uri URI") << uri;
  }
}

TEST(nearest, finds_the_word_one_slip_away) {
  EXPECT_EQ(nearest("rum", {"run", "hold"}), "run");
  EXPECT_EQ(nearest("tll", {"ttl", "uri"}), "ttl");
  EXPECT_EQ(nearest("shwo", {"show", "ls"}), "show");
}

TEST(nearest, finds_nothing_for_a_word_of_its_own) {
  EXPECT_EQ(nearest("frobnicate", {"run", "hold"}), "");
  EXPECT_EQ(nearest("xy", {"ls", "run"}), "");
}

// H78: hidden wherever it may stand, also in URIs that do not parse.
TEST(uri_credentials, are_taken_out) {
  EXPECT_EQ(without_credentials("redis://:canary@db1/3"), "redis://db1/3");
  EXPECT_EQ(without_credentials("rediss://me:canary@db1"), "rediss://db1");
  EXPECT_EQ(without_credentials("redis://me:can/ary@x@db1"), "redis://db1");
  EXPECT_EQ(without_credentials("redis+unix://:canary@/run/r.sock"), "redis+unix:///run/r.sock");
}

TEST(uri_credentials, are_not_seen_in_paths_and_plain_hosts) {
  EXPECT_EQ(without_credentials("redis+unix:///run/a:b@c"), "redis+unix:///run/a:b@c");
  EXPECT_EQ(without_credentials("redis://db1:6379/0"), "redis://db1:6379/0");
  EXPECT_EQ(without_credentials("local:/a@b"), "local:/a@b");
  for (const char* uri : {"rediss://db1:6379?cacert=/etc/pki/ca@corp", "rediss://[::1]:7000/2?key=/home/me@corp/k",
                          "rediss+quorum://db1,db2:7000,db3?cert=/a@b&key=/a:c@b"}) {
    EXPECT_EQ(without_credentials(uri), uri);
    EXPECT_EQ(find_password(uri), std::nullopt);
  }
}

TEST(uri_credentials, leave_a_path_with_an_at_as_it_is) {
  EXPECT_EQ(without_credentials("redis+unix://:canary@/run/redis@main.sock"), "redis+unix:///run/redis@main.sock");
  EXPECT_EQ(without_credentials("redis+sentinel://me:c@nary@db1,db2/name@x"), "redis+sentinel://db1,db2/name@x");
  EXPECT_EQ(without_credentials("rediss://me:canary@db1:6380?cacert=/ca@corp"), "rediss://db1:6380?cacert=/ca@corp");
  EXPECT_EQ(without_credentials("redis://me:can?ary@db1"), "redis://db1");
  EXPECT_EQ(without_credentials("redis://:can?key=ry@db1"), "redis://db1");
  EXPECT_EQ(without_credentials("redis://me:c@n?a=r:y@db1"), "redis://db1");
  EXPECT_EQ(without_credentials("redis://me?a=b:canary@db1"), "redis://db1");
  for (const char* uri :
       {"redis://me:c@nary/canary@db1", "redis+quorum://me:c@nary?canary@db1", "rediss://:c@n#ary@db1"})
    EXPECT_TRUE(without_credentials(uri).ends_with("://db1")) << "no database is called so: " << uri;
  EXPECT_EQ(without_credentials("rediss+sentinel://me:canary@a,b/name@x?cacert=/ca@corp"),
            "rediss+sentinel://a,b/name@x?cacert=/ca@corp");
  EXPECT_EQ(without_credentials("redis://me:canary@db1/a:canary@x"), "redis://x");  // Nobody knows what that is.
}

TEST(uri_password, is_blotted_out_in_place) {
  std::string uri = "redis://me:canary@db1/3";
  EXPECT_TRUE(blot_out_password(uri.data()));
  EXPECT_EQ(uri, "redis://me:******@db1/3");
}

TEST(uri_password, of_a_bare_user_is_none) {
  std::string uri = "redis://me@db1";
  EXPECT_FALSE(blot_out_password(uri.data()));
}

TEST(uri_credentials, are_taken_out_where_they_do_not_belong) {
  EXPECT_EQ(without_credentials("redis://default:canary"), "redis://default:");
  EXPECT_EQ(without_credentials("redis://me:canary@db1:canary"), "redis://db1:");
  EXPECT_EQ(without_credentials("redis://me:canary@db1?PassWord=can^ary"), "redis://db1?PassWord=");
}

// redis://default:canary@db1 whose host was forgotten, and a query as other programs have it.
TEST(uri_password, may_stand_where_it_does_not_belong) {
  for (const char* typed : {
           "redis://me@db1",
           "redis://default:canary",
           "redis://default:12canary/0",
           "default:canary",
           "redis://[::1]:canary",
           "redis+quorum://db1,db2:canary,db3",
           "redis+unix://:canary/run/redis.sock",
           "redis://db1:6379?password=can^ary",
           "db1:6379?db=1&auth=canary",
           "redis://default:canary ",
           "redis://db1:6379 /0",
           "redis://abc:def",
           "redis://ab:cd:1",
           "redis://dead:beef:cafe1",
           "redis://:0123abcd",
           "redis://::canary",
           "redis://::1:canary",
           "redis://a::b::c",
           "redis://::1:123456",
           "redis://::1%eth0:canary",
           "redis://::%canary",
           "redis://:::1/canary",
           "redis://::1?canary",
           "redis://[::1:canary",
           "redis+quorum://::1:1,db2:canary",
       }) {
    EXPECT_TRUE(may_hide_password(typed)) << typed;
  }
}

TEST(uri_password, cannot_be_hidden_in_hosts_and_ports) {
  for (const char* typed : {
           "db1",
           "127.0.0.1:7701",
           "redis://{host}:6379",
           "redis://[::1]:6379/0 ",
           "redis+quorum://db1,db2:7000,db3",
           "rediss://db1?cacert=/etc/my ca.pem",
           "redis+unix:///run/a:b",
           "local:locks",
           "redis://127.0.0.1:7701 ",
           "redis://db1:6379\r",
           "redis://::1:17411",
           "redis://::",
           "redis://[::1",
           "redis://fe80::1%eth0:1",
           "redis://2001:db8:0:0:0:0:0:1:6379/2",
           "redis+quorum://::1:1,db2:2,::3:3",
       }) {
    EXPECT_FALSE(may_hide_password(typed)) << typed;
  }
}

TEST(brackets, are_put_around_addresses_that_lack_them) {
  const auto of = [](std::string_view uri) {
    const auto meant = in_brackets(uri);
    return meant ? meant->uri + meant->zone : "";
  };
  EXPECT_EQ(of("redis://::1:17411/2"), "redis://[::1]:17411/2");
  EXPECT_EQ(of("redis://fe80::1:2"), "redis://[fe80::1:2]");  // Of a port that short nobody knows.
  EXPECT_EQ(of("redis://[::1"), "redis://[::1]");
  EXPECT_EQ(of("redis+quorum://::1,b:1,[::2]:3"), "redis+quorum://[::1],b:1,[::2]:3");
  EXPECT_EQ(of("redis://fe80::1%eth0:1"), "redis://[fe80::1]:1%eth0");
  for (const auto* uri : {"redis://h:1", "redis://[::1]:1", "redis://a:b:c", "redis+unix:///::1", "::1"})
    EXPECT_EQ(of(uri), "") << uri;
}

// The library makes two slashes one where a URI was taken for a directory.
TEST(visible_path, shows_no_password_of_a_uri) {
  EXPECT_EQ(visible_path("/tmp/redis:/me:canary@h/1"), "/tmp/redis:/h/1");
  EXPECT_EQ(visible_path("/tmp/redis+sentinel:/:canary@h"), "/tmp/redis+sentinel:/h");
  EXPECT_EQ(visible_path("rediss://:canary@h"), "rediss://h");
  for (const auto* path : {"/run/redis/a:b@c", "/srv/me:x@y", "/redis:/h:6379", "x"})
    EXPECT_EQ(visible_path(path), path);
}

TEST(name_argument, is_a_word_for_it_where_it_may_have_a_password) {
  for (const auto* name : {"redis://:canary@h", "redis://default:canary", "https://me:canary@h/x"})
    EXPECT_EQ(name_argument(name), "NAME") << name;
  EXPECT_EQ(name_argument("https://h:80/x"), "https://h:80/x");
}

TEST(several_hosts, are_those_of_a_scheme_for_one) {
  EXPECT_EQ(several_hosts("redis://a:1,b:2/3"), "a:1,b:2");
  EXPECT_EQ(several_hosts("rediss://me:c,anary@a,b"), "a,b");
  for (const auto* uri : {"redis+quorum://a,b,c", "redis://a", "redis://me:a,b@c", "redis://me:a,b", "redis://"})
    EXPECT_EQ(several_hosts(uri), std::nullopt) << uri;
}

TEST(uri_password, is_blotted_out_where_it_does_not_belong) {
  const auto blotted = [](std::string uri) {
    EXPECT_TRUE(blot_out_password(uri.data())) << uri;
    return uri;
  };
  EXPECT_EQ(blotted("redis://default:canary/1"), "redis://default:********");
  EXPECT_EQ(blotted("redis://db1?password=canary"), "redis://db1?password=******");
  EXPECT_EQ(blotted("redis://me:canary@db1?auth=canary"), "redis://me:******@db1?auth=******");
}

}  // namespace
