// SPDX-License-Identifier: Apache-2.0
// interface.md 5.3: what is said of each fault, and its way out.
#include "message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

namespace {

using namespace holdfast::cli;
using holdfast::errc;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string shown(errc cause, holdfast::error_detail detail = {}, std::string_view lock = "nightly") {
  return to_text(describe(holdfast::error{cause, std::move(detail)}, {.lock = lock, .prefix = "hf:"}));
}

TEST(E01, names_the_server_its_words_and_the_tries) {
  const auto text = shown(errc::cannot_connect, {.endpoint = "redis://127.0.0.1:6379",
                                                 .server_text = "Connection refused",
                                                 .attempts = 3,
                                                 .elapsed = std::chrono::milliseconds{1200}});
  EXPECT_THAT(text, HasSubstr("cannot reach redis://127.0.0.1:6379: Connection refused (tried 3 times in 1.2s)"));
  EXPECT_THAT(text, HasSubstr("  fix: "));
}

TEST(E24, says_how_many_replicas_have_it_and_what_to_look_at) {
  const auto text =
      shown(errc::not_replicated, {.endpoint = "redis://db1", .why = "1 of 2 replicas confirmed it within 100 ms"});
  EXPECT_THAT(text, HasSubstr("error[E24]: 'nightly' was not granted: too few replicas of redis://db1 have it"));
  EXPECT_THAT(text, HasSubstr("why: 1 of 2 replicas confirmed it within 100 ms"));
  EXPECT_THAT(text, HasSubstr("holdfast doctor --replicas K"));
}

TEST(E14, names_the_key) {
  EXPECT_THAT(shown(errc::wrong_kind, {.endpoint = "redis://db1"}),
              HasSubstr("key 'hf:{nightly}' exists on redis://db1"));
}

TEST(E20, says_for_how_long_a_lock_may_be_left) {
  EXPECT_THAT(shown(errc::reply_lost, {.endpoint = "redis://db1", .may_remain = std::chrono::milliseconds{15'000}}),
              HasSubstr("left taken for 15s at most"));
}

TEST(E20, says_which_servers_of_a_quorum_did_not_answer) {
  EXPECT_THAT(shown(errc::reply_lost,
                    {.endpoint = "redis+quorum://a,b,c", .why = "2 of 3 servers gave no vote: a: no answer; b: gone"}),
              HasSubstr("why: 2 of 3 servers gave no vote: a: no answer; b: gone; so nobody knows whether"));
}

TEST(E20, says_what_nobody_knows_of_what_was_asked_for) {
  const auto of = [](intent what, std::string_view lock) {
    return to_text(
        describe(holdfast::error{errc::reply_lost, {.endpoint = "redis://db1"}}, {.lock = lock, .what = what}));
  };
  EXPECT_THAT(of(intent::take, "x"), HasSubstr("nobody knows whether 'x' was taken"));
  EXPECT_THAT(of(intent::break_lock, "x"), HasSubstr("nobody knows whether 'x' was broken"));
  for (const auto what : {intent::look, intent::declare}) {
    EXPECT_THAT(of(what, ""), HasSubstr("redis://db1 got the request and its answer never came"));
    EXPECT_THAT(of(what, ""), Not(HasSubstr("holdfast show")));
    EXPECT_THAT(of(what, ""), Not(HasSubstr("taken")));
  }
}

TEST(E08, of_a_token_far_ahead_says_which_and_why) {
  const auto what = describe(holdfast::error{errc::fence_too_far, {.endpoint = "redis://db1", .subject = "'x'"}},
                             {.lock = "x", .min_fence = holdfast::fencing_token{8'000'000'000'000'000}});
  EXPECT_EQ(what.text, "--min-fence 8000000000000000 is more than a year ahead of the clock of redis://db1");
  EXPECT_THAT(what.why, HasSubstr("microseconds"));
}

TEST(E07, names_a_way_out_that_is_one) {
  const auto fix = [](std::string_view lock, bool plain) {
    return describe(holdfast::error{errc::invalid_name}, {.lock = lock, .plain = plain}).fix;
  };
  EXPECT_EQ(fix("a\nb", false), "another name, the same for all who share the lock");  // --plain is another lock.
  EXPECT_EQ(fix(std::string(2000, 'n'), false), "another name, of 1 to 512 bytes");
  EXPECT_EQ(fix(std::string(2000, 'n'), true), "another name, of 1 to 512 bytes");
}

TEST(E03, of_a_cluster_says_that_it_has_one_database) {
  const auto fix = [](const char* words) {
    return describe(holdfast::error{errc::wrong_database, {.server_text = words, .subject = "3"}}).fix;
  };
  EXPECT_EQ(fix("ERR SELECT is not allowed in cluster mode"), "remove the /N: a cluster has database 0 only");
  EXPECT_THAT(fix("ERR DB index is out of range"), HasSubstr("0 to 15"));
}

TEST(E04, names_the_command_that_is_missing) {
  const auto fix = [](const char* words) {
    return describe(holdfast::error{errc::no_permission, {.server_text = words, .subject = "user 'worker'"}}).fix;
  };
  EXPECT_EQ(fix("NOPERM this user has no permissions to run the 'script|load' command"),
            "ACL SETUSER worker +script|load; `holdfast help acl` has the one ACL rule that locks need");
  for (const auto* words : {"NOPERM this user has no permissions to access one of the keys used as arguments",
                            "NOPERM to run the 'x; rm' command", "NOPERM to run the 'x", "NOPERM to run the '"})
    EXPECT_EQ(fix(words), "`holdfast help acl` has the one ACL rule that locks need") << words;
}

TEST(E04, of_a_listing_says_what_it_gives_away) {
  const auto what = describe(holdfast::error{errc::no_permission, {.server_text = "NOPERM", .subject = "SCAN"}});
  EXPECT_EQ(what.fix, "ACL SETUSER USER +scan, for operators: it shows the names of all keys, other people's too");
}

TEST(E13, of_a_certificate_alone_asks_for_its_key) {
  const auto fix = [](const server_files& files, std::string_view uri) {
    return describe(holdfast::error{errc::tls_failed, {.server_text = "cannot use private key 'a.crt': unsupported"}},
                    {.uri = uri, .files = files})
        .fix;
  };
  EXPECT_EQ(fix({.cert = "a.crt"}, "rediss://h"), "--key FILE, with the certificate's key in PEM");
  EXPECT_EQ(fix({}, "rediss://h?cert=a.crt"), "&key=FILE in the URI, with the certificate's key in PEM");
  constexpr auto both = "--cert FILE and --key FILE, in PEM and made for each other";
  EXPECT_EQ(fix({.cert = "a.crt", .key = "a.key"}, "rediss://h"), both);
  EXPECT_EQ(fix({}, "rediss://h?cert=a.crt&key=a.key"), both);
}

// Not everything that keeps us from connecting is the network's.
TEST(E01, tells_what_is_wrong_on_this_side) {
  const auto of = [](const char* endpoint, int number) {
    return shown(errc::cannot_connect, {.endpoint = endpoint, .server_text = std::generic_category().message(number)});
  };
  const char* tcp = "redis://h:1";
  const char* socket = "redis+unix:///run/s";
  EXPECT_THAT(of(tcp, ECONNREFUSED), HasSubstr("nothing listens there"));
  EXPECT_THAT(of(tcp, EMFILE), AllOf(HasSubstr("no descriptor left"), Not(HasSubstr("listens"))));
  for (const char* words : {"Too many open files", "eventfd: Too many open files", "Too many open files in system"})
    EXPECT_THAT(shown(errc::cannot_connect, {.endpoint = socket, .server_text = words}),
                AllOf(HasSubstr("no descriptor left"), HasSubstr("ulimit -n"), Not(HasSubstr("listens"))))
        << words;
  EXPECT_THAT(of(tcp, EADDRNOTAVAIL), HasSubstr("local addresses"));
  EXPECT_THAT(of(tcp, EPERM), HasSubstr("a rule of this machine"));
  EXPECT_THAT(of(socket, EACCES), HasSubstr("do not let this user in"));
  EXPECT_THAT(of(socket, ENOENT), HasSubstr("there is no such file"));
  EXPECT_THAT(of(socket, ECONNREFUSED), HasSubstr("redis-server --unixsocket PATH"));
}

TEST(E01, of_a_connection_that_is_closed_asks_for_tls_where_there_may_be_some) {
  const auto of = [](const char* endpoint) {
    return describe(holdfast::error{errc::connection_lost, {.endpoint = endpoint}}).fix;
  };
  EXPECT_THAT(of("redis://h:1"), HasSubstr("rediss:// if the port speaks TLS"));
  EXPECT_THAT(of("rediss://h:1"), Not(HasSubstr("TLS")));
  EXPECT_THAT(of("redis+unix:///run/s"), Not(HasSubstr("TLS")));
}

// It is started by who names it, and has no port.
TEST(E01, of_the_local_server_says_how_that_is_started) {
  for (const auto cause : {errc::cannot_connect, errc::connection_lost}) {
    const auto text = shown(cause, {.endpoint = "local:", .server_text = "No such file or directory"});
    EXPECT_THAT(text, HasSubstr("run it again, which starts it; or: holdfast local start"));
    EXPECT_THAT(text, AllOf(Not(HasSubstr("TLS")), Not(HasSubstr("--port"))));
    EXPECT_THAT(shown(cause, {.endpoint = "local:/d"}), HasSubstr("holdfast local start DIRECTORY"));
  }
  EXPECT_THAT(shown(errc::server_silent, {.endpoint = "local:"}),
              AllOf(HasSubstr("holdfast local status"), Not(HasSubstr("TLS"))));
}

TEST(E01, of_a_silent_socket_speaks_of_no_port) {
  const auto text = shown(errc::server_silent, {.endpoint = "redis+unix:///run/s"});
  EXPECT_THAT(text, AllOf(HasSubstr("redis-cli -s PATH PING"), Not(HasSubstr("port")), Not(HasSubstr("TLS"))));
  EXPECT_THAT(shown(errc::server_silent, {.endpoint = "redis://h:1"}), HasSubstr("TLS"));
}

TEST(E01, of_a_host_that_says_nothing_at_all_speaks_of_no_connection) {
  const auto of = [](const char* words) {
    return shown(errc::server_silent, {.endpoint = "redis://h:1", .server_text = words});
  };
  EXPECT_THAT(of("no connection"), AllOf(HasSubstr("cannot reach redis://h:1: no connection"), HasSubstr("firewalls"),
                                         Not(HasSubstr("accepts")), Not(HasSubstr("TLS"))));
  EXPECT_THAT(of("no answer"), HasSubstr("accepts connections and answers nothing"));
}

TEST(E20, of_an_answer_that_nobody_understands_says_where_to_look) {
  const auto fix = [](intent what, std::string_view lock) {
    return describe(holdfast::error{errc::unexpected_reply, {.endpoint = "redis://h:1"}}, {.lock = lock, .what = what})
        .fix;
  };
  const std::string look = "look what answers there: a proxy, or another protocol on that port";
  EXPECT_EQ(fix(intent::declare, ""), look);
  EXPECT_EQ(fix(intent::look, "x"), look);  // Nothing can have been taken.
  EXPECT_EQ(fix(intent::take, "x"), look + "; and who holds it: holdfast show x");
}

TEST(E14, names_no_other_prefix_for_a_plain_key) {
  const auto fix = [](bool plain) {
    return describe(holdfast::error{errc::wrong_kind}, {.lock = "x", .prefix = "hf:", .plain = plain}).fix;
  };
  EXPECT_EQ(fix(false), "another name, or another --prefix");
  EXPECT_EQ(fix(true), "another name");
}

TEST(E15, of_a_plain_key_that_no_cluster_can_keep_speaks_of_the_key) {
  const auto what =
      describe(holdfast::error{errc::wrong_server,
                               {.endpoint = "redis+cluster://a,b", .server_text = "CROSSSLOT Keys in request don't"}},
               {.lock = "a}b", .prefix = "hf:", .plain = true});
  EXPECT_EQ(what.code, "E15");
  EXPECT_EQ(what.text, "'a}b' cannot be kept on a cluster: CROSSSLOT Keys in request don't");
  EXPECT_EQ(what.fix, "a key without }, or with a hash tag: {...}");
}

TEST(E06, of_a_quorum_names_no_primary_which_each_of_them_is_to_be) {
  const auto of = [](const char* endpoint) {
    return shown(errc::not_a_primary, {.endpoint = endpoint, .server_text = "a:1: HELLO says role replica"});
  };
  EXPECT_THAT(of("redis+quorum://a:1,b:1,c:1"),
              AllOf(HasSubstr("REPLICAOF NO ONE"), HasSubstr("a:1: HELLO"), Not(HasSubstr("name the primary"))));
  EXPECT_THAT(of("redis://a:1"), HasSubstr("name the primary"));
}

TEST(E22, of_a_quorum_sends_nobody_to_a_resize_that_is_refused) {
  const auto fix = [](const char* endpoint) {
    return describe(holdfast::error{errc::other_size, {.endpoint = endpoint}}, {.lock = "x", .prefix = "hf:"}).fix;
  };
  EXPECT_THAT(fix("redis://db1"), AllOf(HasSubstr("`holdfast show x` says"), testing::EndsWith("holdfast resize x N")));
  EXPECT_THAT(fix("redis+quorum://a,b,c"), AllOf(HasSubstr("`holdfast show x` says"), HasSubstr("each server alone"),
                                                 Not(HasSubstr("holdfast resize"))));
}

TEST(E23, of_who_asked_for_no_lock_says_what_cannot_be_told) {
  const auto text = [](intent what, std::string_view lock) {
    return to_text(describe(holdfast::error{errc::quarantined, {.why = "generation 2 of it is not open here yet"}},
                            {.lock = lock, .what = what}));
  };
  EXPECT_THAT(text(intent::take, "x"), AllOf(HasSubstr("'x' was not granted: the list of"), HasSubstr("(-w)")));
  for (const auto what : {intent::look, intent::break_lock})
    EXPECT_THAT(text(what, "x"), AllOf(HasSubstr("who holds 'x' cannot be told: the list of"), Not(HasSubstr("(-w)"))));
  EXPECT_THAT(text(intent::look, ""), HasSubstr("what is held cannot be told: the list of"));
}

TEST(E13, of_a_handshake_without_an_answer_has_a_reason) {
  EXPECT_THAT(shown(errc::tls_failed, {.endpoint = "rediss://h:1"}), HasSubstr("speaks Redis without TLS"));
}

// Whoever has an expired certificate must not be sent to look for an authority. tests/cli/tls_test.py has the same with
// servers, so that these words are OpenSSL's.
TEST(E13, has_the_way_out_of_what_failed) {
  const auto fix = [](const char* words) {
    return describe(holdfast::error{errc::tls_failed, {.endpoint = "rediss://h:1", .server_text = words}}).fix;
  };
  EXPECT_THAT(fix("certificate verify failed: certificate has expired"), HasSubstr("the clocks"));
  EXPECT_THAT(fix("certificate verify failed: certificate is not yet valid"), HasSubstr("the clocks"));
  EXPECT_THAT(fix("certificate verify failed: hostname mismatch"), HasSubstr("name the host as it does"));
  EXPECT_THAT(fix("certificate verify failed: IP address mismatch"), HasSubstr("name the host as it does"));
  for (const auto* words : {"self-signed certificate", "self signed certificate in certificate chain",
                            "unable to get local issuer certificate", "unable to verify the first certificate"})
    EXPECT_THAT(fix((std::string{"certificate verify failed: "} + words).c_str()), HasSubstr("--cacert FILE")) << words;
  for (const auto* words : {"tlsv13 alert certificate required", "sslv3 alert handshake failure",
                            "ssl/tls alert handshake failure", "tlsv1 alert unknown ca", "sslv3 alert bad certificate"})
    EXPECT_THAT(fix(words), AllOf(HasSubstr("--cert"), Not(HasSubstr("--cacert")))) << words;
  for (const auto* words : {"", "the handshake got no answer; that port probably speaks plain Redis",
                            "wrong version number", "the server closed the connection during the handshake"})
    EXPECT_THAT(fix(words), AllOf(HasSubstr("redis:// if that port is plain"), Not(HasSubstr("--cacert")))) << words;
  EXPECT_THAT(fix("tlsv1 alert protocol version"), HasSubstr("tls-protocols"));
  EXPECT_THAT(fix("cannot use private key 'certificate has expired.pem': key values mismatch"),
              HasSubstr("--key FILE"));
  EXPECT_THAT(fix("something new"), AllOf(HasSubstr("redis://"), HasSubstr("--cacert")));
}

TEST(E04, names_the_option_and_not_the_librarys_field) {
  const auto text = shown(errc::no_permission, {.server_text = "(allow +info, or say quarantine = "
                                                               "trust_every_write_is_synced)"});
  EXPECT_THAT(text, AllOf(HasSubstr("or say --trust-every-write-is-synced)"), Not(HasSubstr("quarantine ="))));
}

TEST(E10, has_the_way_out_of_what_kept_them_from_voting) {
  const auto fix = [](const char* why) {
    return describe(holdfast::error{errc::no_quorum, {.endpoint = "redis+quorum://a,b,c", .why = why}}).fix;
  };
  EXPECT_EQ(fix("1 of 3 servers gave no vote: a: Connection refused; 1 was not waited for"),
            "start those that are down; a majority of the servers must be there");
  EXPECT_THAT(fix("1 of 3 servers gave no vote: a: its clock is far from that of the others"),
              HasSubstr("chrony or ntpd where the clock is off; start"));
  EXPECT_THAT(fix("1 of 3 servers gave no vote: a: Connection refused; a semaphore of 2 takes 3 votes"),
              HasSubstr("as many servers as it takes votes must be there"));
}

TEST(E15, of_a_server_that_does_not_say_what_to_do_says_it) {
  const auto fix = [](const char* words) {
    return describe(holdfast::error{errc::server_refused, {.endpoint = "redis://h:1", .server_text = words}}).fix;
  };
  EXPECT_THAT(fix("CLUSTERDOWN Hash slot not served"), HasSubstr("redis-cli --cluster check"));
  EXPECT_THAT(fix("NOREPLICAS Not enough good replicas to write."), HasSubstr("start its replicas"));
  EXPECT_THAT(fix("MISCONF Errors writing to the AOF file: No space left on device"), HasSubstr("its log"));
  EXPECT_EQ(fix("it does not keep what it is told: its memory is full, or it takes no writes"), "holdfast doctor");
  EXPECT_THAT(fix("ERR max number of clients reached"), HasSubstr("raise maxclients"));
  EXPECT_EQ(fix("DENIED Redis is running in protected mode because ..."), "do what the server says");
}

TEST(E23, says_when_a_server_may_be_trusted_that_has_not_started_for_the_first_time) {
  const auto text = [](const char* why) { return shown(errc::quarantined, {.why = why}); };
  EXPECT_THAT(text("the server restarted or was promoted 3 s ago and may have forgotten locks: nothing is granted"),
              AllOf(HasSubstr("if it has kept every write: holdfast init"), Not(HasSubstr("first start"))));
  EXPECT_THAT(text("the server started 3 s ago and may have forgotten locks"), HasSubstr("the server's first start"));
  EXPECT_THAT(text("the server restarted or was promoted and may have forgotten locks"),
              HasSubstr("if it has kept every write: holdfast init"));
}

TEST(E14, says_what_the_key_is_instead) {
  const auto text = shown(errc::wrong_kind, {.subject = "key 'hf:{nightly}'", .why = "it is a list"});
  EXPECT_THAT(text, HasSubstr("it is a list, of some other program"));
}

// With -u "rediss://u:...@h/xx" of a script nobody saw which part was meant.
TEST(E17, of_a_uri_says_which_part_is_wrong) {
  const auto of = [](const char* subject) {
    return describe(holdfast::error{errc::invalid_uri, {.subject = subject}}).text;
  };
  EXPECT_EQ(of("xx"), "in the server's URI, 'xx' cannot be understood");
  EXPECT_EQ(of("the host"), "in the server's URI, the host cannot be understood");
  EXPECT_EQ(of("a URI of 11 bytes"), "a URI of 11 bytes is not a server that we know how to reach");
}

TEST(E17, of_a_uri_shows_nothing_that_may_hide_a_password) {
  const auto of = [](std::string_view uri) {
    return to_text(describe(holdfast::error{errc::invalid_uri, {.subject = "a URI of 9 bytes"}}, {.uri = uri}));
  };
  EXPECT_THAT(of("127.0.0.1:7701"), HasSubstr("'127.0.0.1:7701' is not a server"));
  EXPECT_THAT(of("redis://{host}"), HasSubstr("'redis://{host}' is not a server"));
  for (const auto* uri : {"redis://db1?password=can^ary", "redis://me:can^ary", "me:can^ary", "redis://:can^ary@db1"})
    EXPECT_THAT(of(uri), AllOf(HasSubstr(": a URI of 9 bytes is not a server"), Not(HasSubstr("can^ary")))) << uri;
}

// It can be understood, and is wrong.
TEST(E17, of_a_quorum_that_can_be_split_says_how_many_there_are) {
  const auto what = describe(holdfast::error{errc::invalid_uri, {.subject = "2 servers", .why = "w"}});
  EXPECT_EQ(what.text, "2 servers are no quorum");
  EXPECT_THAT(what.fix, HasSubstr("1, 3, 5, 7 or 9 servers"));
}

TEST(E17, of_a_local_directory_says_how_it_is_named) {
  const auto what =
      describe(holdfast::error{errc::invalid_uri, {.subject = "a URI of 9 bytes", .why = "w"}}, {.uri = "local:rel"});
  EXPECT_EQ(what.fix, "local:/DIRECTORY, or local:");
}

// With HOLDFAST_URI=redis://$HOST and no HOST.
TEST(E17, of_a_host_that_is_missing_does_not_speak_of_quorums) {
  const auto of = [](const char* subject, const char* why) {
    return describe(holdfast::error{errc::invalid_uri, {.subject = subject, .why = why}}).fix;
  };
  EXPECT_THAT(of("redis://", "a host must follow"), testing::StartsWith("redis://HOST:PORT/DB, "));
  EXPECT_EQ(of("redis://db1:6379", "it names no quorum"), "holdfast help quorum");
}

}  // namespace
