// SPDX-License-Identifier: Apache-2.0
#include "client/uri.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using testing::HasSubstr;
using testing::Not;

server_uri parsed(std::string_view text) {
  error_detail why;
  auto uri = parse_uri(text, why);
  EXPECT_TRUE(uri.has_value()) << text << ": " << why.subject << ": " << why.why;
  return uri.value_or(server_uri{});
}

// "host port", "[unix] path" or "[local] directory", and the database.
std::string place(const server_uri& uri) {
  std::string text;
  if (uri.is_local) {
    text = "[local] " + uri.local_directory;
  } else if (const auto* path = std::get_if<net::unix_address>(&uri.where.where)) {
    text = "[unix] " + path->path;
  } else {
    const auto& tcp = std::get<net::tcp_address>(uri.where.where);
    text = tcp.host + " " + tcp.port;
  }
  return text + " " + std::to_string(uri.database);
}

struct good_uri {
  const char* text;
  const char* place;
  const char* display;
};

constexpr good_uri good_ones[] = {
    {"redis://db1", "db1 6379 0", "redis://db1:6379"},
    {"redis://db1/", "db1 6379 0", "redis://db1:6379"},
    {"redis://db1:6380", "db1 6380 0", "redis://db1:6380"},
    {"redis://db1:65535/15", "db1 65535 15", "redis://db1:65535/15"},
    {"redis://db1/0", "db1 6379 0", "redis://db1:6379"},
    {"redis://192.0.2.7:1", "192.0.2.7 1 0", "redis://192.0.2.7:1"},
    {"redis://[::1]", "::1 6379 0", "redis://[::1]:6379"},
    {"redis://LocalHost:07513/02", "localhost 7513 2", "redis://localhost:7513/2"},
    {"rediss://[0:0::0001]:6379", "::1 6379 0", "rediss://[::1]:6379"},
    {"redis://[2001:db8::7]:6380/3", "2001:db8::7 6380 3", "redis://[2001:db8::7]:6380/3"},
    {"redis://:hunter2@db1:6380", "db1 6380 0", "redis://db1:6380"},
    {"redis://app:hunter2@[::1]:6380/2", "::1 6380 2", "redis://[::1]:6380/2"},
    {"rediss://app:hunter2@db1", "db1 6379 0", "rediss://db1:6379"},
    {"rediss://db1/4?cacert=/etc/ca.pem", "db1 6379 4", "rediss://db1:6379/4"},
    {"redis+unix:///run/redis.sock", "[unix] /run/redis.sock 0", "redis+unix:///run/redis.sock"},
    {"redis+unix:///run/redis.sock?db=7", "[unix] /run/redis.sock 7", "redis+unix:///run/redis.sock?db=7"},
    {"redis+unix://app:hunter2@/run/redis.sock?db=7", "[unix] /run/redis.sock 7", "redis+unix:///run/redis.sock?db=7"},
    {"local:", "[local]  0", "local:"},
    {"local:/var/lib/locks", "[local] /var/lib/locks 0", "local:/var/lib/locks"},
};

TEST(parse_uri, finds_the_place_and_the_database) {
  for (const auto& good : good_ones) EXPECT_EQ(place(parsed(good.text)), good.place) << good.text;
}

TEST(parse_uri, displays_one_spelling_without_user_and_password) {
  for (const auto& good : good_ones) EXPECT_EQ(parsed(good.text).display, good.display) << good.text;
}

TEST(parse_uri, reads_what_it_displays) {
  for (const auto& good : good_ones) {
    const auto once = parsed(good.text);
    const auto again = parsed(once.display);
    EXPECT_EQ(again.display, once.display);
    EXPECT_EQ(place(again), place(once));
    EXPECT_EQ(again.where.uses_tls, once.where.uses_tls) << good.text;
  }
}

TEST(parse_uri, decodes_user_and_password) {
  const auto uri = parsed("redis://app%40prod:p%40ss%2Fw%3Ard%25@db1");
  EXPECT_EQ(uri.who.user, "app@prod");
  EXPECT_EQ(uri.who.password, "p@ss/w:rd%");
}

TEST(parse_uri, takes_a_password_without_a_user) {
  const auto uri = parsed("redis://:hunter2@db1");
  EXPECT_EQ(uri.who.user, "");
  EXPECT_EQ(uri.who.password, "hunter2");
}

TEST(parse_uri, uses_tls_for_rediss_alone) {
  EXPECT_TRUE(parsed("rediss://db1").where.uses_tls);
  EXPECT_FALSE(parsed("redis://db1").where.uses_tls);
  EXPECT_FALSE(parsed("redis+unix:///run/redis.sock").where.uses_tls);
}

TEST(parse_uri, reads_the_files_of_rediss) {
  const auto uri = parsed("rediss://db1?cacert=/etc/my%20ca.pem&cert=/etc/me.pem&key=/etc/me.key");
  EXPECT_EQ(uri.where.tls.cacert, "/etc/my ca.pem");
  EXPECT_EQ(uri.where.tls.cert, "/etc/me.pem");
  EXPECT_EQ(uri.where.tls.key, "/etc/me.key");
}

// A plus in a URI's query is one; a space in its place is a custom of HTML forms.
TEST(parse_uri, takes_a_plus_for_a_plus) {
  EXPECT_EQ(parsed("rediss://db1?cacert=/etc/a+b/ca.pem").where.tls.cacert, "/etc/a+b/ca.pem");
}

// P22: it has one voice in the majority that names a primary.
TEST(parse_uri, knows_a_sentinel_in_another_spelling) {
  for (const std::string_view all :
       {"s1,S1", "s1,s1:026379", "[::1],[0::1]", "[::1],[0:0:0:0:0:0:0:1]", "[fe80::A],[fe80::a]"}) {
    const auto text = "redis+sentinel://" + std::string{all} + ",s3/main";
    error_detail why;
    EXPECT_FALSE(parse_uri(text, why).has_value()) << text;
    EXPECT_THAT(why.why, HasSubstr("named twice")) << text;
  }
  const auto uri = parsed("redis+sentinel://S1:026380,[0::1]/main");
  EXPECT_EQ(uri.display, "redis+sentinel://s1:26380,[::1]:26379/main");
}

TEST(parse_uri, knows_a_server_of_a_quorum_in_another_spelling_R20) {
  for (const std::string_view all : {"a,b,a:06379", "[::1],[0::1],a"}) {
    const auto text = "redis+quorum://" + std::string{all};
    error_detail why;
    EXPECT_FALSE(parse_uri(text, why).has_value()) << text;
    EXPECT_THAT(why.why, HasSubstr("named twice")) << text;
  }
}

TEST(parse_uri, reads_sentinels_and_the_name_of_the_primary) {
  const auto uri = parsed("redis+sentinel://app:secret@s1,10.0.0.2:5000,[::1]/my-master_1.a/3");
  ASSERT_TRUE(uri.sentinels);
  const auto& set = *uri.sentinels;
  ASSERT_EQ(set.sentinels.size(), 3u);
  EXPECT_EQ(set.sentinels[0].host, "s1");
  EXPECT_EQ(set.sentinels[0].port, "26379");
  EXPECT_EQ(set.sentinels[1].host, "10.0.0.2");
  EXPECT_EQ(set.sentinels[1].port, "5000");
  EXPECT_EQ(set.sentinels[2].host, "::1");
  EXPECT_EQ(set.primary, "my-master_1.a");
  EXPECT_EQ(uri.database, 3);
  // They are for the primary: the sentinels have their own.
  EXPECT_EQ(uri.who.user, "app");
  EXPECT_EQ(uri.who.password, "secret");
  EXPECT_EQ(set.who.password, "");
  EXPECT_EQ(uri.display, "redis+sentinel://s1:26379,10.0.0.2:5000,[::1]:26379/my-master_1.a/3");
  EXPECT_EQ(parsed(uri.display).display, uri.display);
}

TEST(parse_uri, reads_nodes_of_a_cluster) {
  const auto uri = parsed("redis+cluster://app:secret@db1,10.0.0.2:5000,[::1]/0");
  ASSERT_TRUE(uri.cluster);
  ASSERT_EQ(uri.cluster->nodes.size(), 3u);
  EXPECT_EQ(uri.cluster->nodes[0].port, "6379");
  EXPECT_EQ(uri.cluster->nodes[1].port, "5000");
  EXPECT_EQ(uri.cluster->nodes[2].host, "::1");
  EXPECT_EQ(uri.who.password, "secret");
  EXPECT_EQ(uri.display, "redis+cluster://db1:6379,10.0.0.2:5000,[::1]:6379");
  EXPECT_TRUE(parsed("redis+cluster://db1/").cluster);
}

TEST(parse_uri, a_cluster_has_database_0_only) {
  error_detail why;
  EXPECT_FALSE(parse_uri("redis+cluster://db1,db2/3", why));
  EXPECT_EQ(why.subject, "3");
  EXPECT_THAT(why.why, HasSubstr("database 0"));
}

TEST(parse_uri, reads_a_cluster_over_tls) {
  const auto uri = parsed("rediss+cluster://db1,db2?cacert=/etc/ca.pem");
  ASSERT_TRUE(uri.cluster);
  EXPECT_TRUE(uri.cluster->uses_tls);
  EXPECT_EQ(uri.where.tls.cacert, "/etc/ca.pem");
}

TEST(parse_uri, reads_sentinels_over_tls) {
  const auto uri = parsed("rediss+sentinel://s1,s2/main?cacert=/etc/ca.pem");
  ASSERT_TRUE(uri.sentinels);
  EXPECT_TRUE(uri.where.uses_tls);
  EXPECT_TRUE(uri.sentinels->uses_tls);
  EXPECT_EQ(uri.where.tls.cacert, "/etc/ca.pem");
  EXPECT_FALSE(parsed("redis+sentinel://s1/main").where.uses_tls);
}

TEST(parse_uri, takes_a_password_with_a_comma_for_a_password) {
  const auto uri = parsed("redis+sentinel://app:a,b@s1,s2/main");
  EXPECT_EQ(uri.who.password, "a,b");
  ASSERT_TRUE(uri.sentinels);
  EXPECT_EQ(uri.sentinels->sentinels.size(), 2u);
}

TEST(parse_uri, says_that_a_zone_is_none_of_an_address) {
  for (const char* bad : {"redis://[fe80::1%25eth0]", "redis://[fe80::1%eth0]:6379/1", "redis://me:hunter2@[fe80::1%1]",
                          "redis+quorum://a,b,[fe80::1%25eth0]:6379"}) {
    error_detail why;
    EXPECT_FALSE(parse_uri(bad, why)) << bad;
    EXPECT_EQ(why.subject, "the address in brackets") << bad;
    EXPECT_THAT(why.why, testing::HasSubstr("zone")) << bad;
  }
  for (const char* other : {"redis://[fe80::1", "redis://:a[b%20c]d@db1", "redis://:hunter2%5B%5D@[fe80::1%25eth0"}) {
    error_detail why;
    EXPECT_FALSE(parse_uri(other, why)) << other;
    EXPECT_THAT(why.why, testing::Not(testing::HasSubstr("zone"))) << other;
  }
}

constexpr const char* bad_ones[] = {
    "",
    "db1",
    "db1:6379",
    "redis:",
    "redis:db1",
    "redis://",
    "redis://:hunter2@",
    "redis://:hunter2@:6379",
    "redis://:hunter2@db1:-1",
    "redis://:hunter2@db1:1:2",
    "redis://:hunter2@::1",
    "redis://:hunter2@[::1",
    "redis://:hunter2@db1:0",
    "redis://:hunter2@db1:65536",
    "redis://:hunter2@db1:99999999999999999999",
    "redis://:hunter2@db1:abc",
    "redis://:hunter2@db1/abc",
    "redis://:hunter2@db1/-1",
    "redis://:hunter2@db1/+1",
    "redis://:hunter2@db1/1/2",
    "redis://:hunter2@db1/99999999999999999999",
    "redis://:hunter2@db1/0#part",
    "redis://:hunter2@db1?db=1",
    "redis://:hunter2@db1?cacert=/etc/ca.pem",
    "redis://:hunter2@db1?cert=/etc/me.pem",
    "redis://:hunter2@db1?key=/etc/me.key",
    "rediss://:hunter2@db1?verify=no",
    "redis://:hunter2@db1 ",
    "redis+unix:",
    "redis+unix://",
    "redis+unix:///",
    "redis+unix:run/redis.sock",
    "redis+unix://run/redis.sock",
    ("redis+unix:///a/path/that/has/more/bytes/than/a/socket/can/have/so/that/no/server/can/be/there/whatever/its/"
     "configuration"),
    "redis+unix:///run/a%0Ab",
    "redis+unix:///run/a%7Fb",
    "redis+unix://:hunter2@/run/redis.sock?db=abc",
    "redis+unix://:hunter2@/run/redis.sock?cacert=/etc/ca.pem",
    "redis+sentinel:",
    "redis+sentinel://",
    "redis+sentinel://:hunter2@",
    "redis+sentinel://:hunter2@/main",
    "redis+sentinel://:hunter2@s1,s2",
    "redis+sentinel://:hunter2@s1,s2/",
    "redis+sentinel://:hunter2@s1,s2//1",
    "redis+sentinel://:hunter2@s1,/main",
    "redis+sentinel://:hunter2@,s1/main",
    "redis+sentinel://:hunter2@s1,,s2/main",
    "redis+sentinel://:hunter2@s1,s1:26379/main",
    "redis+sentinel://:hunter2@s1:1:2,s2/main",
    "redis+sentinel://:hunter2@s1,s2:0/main",
    "redis+sentinel://:hunter2@s1,user@s2/main",
    "redis+sentinel://:hunter2@s1,:hunter2@s2/main",
    "redis+sentinel://:hunter2@s1,s2/main/abc",
    "redis+sentinel://:hunter2@s1,s2/main/1/2",
    "redis+sentinel://:hunter2@s1,s2/ma%20in",
    "redis+sentinel://:hunter2@s1,s2/main?db=1",
    "redis+sentinel://:hunter2@s1,s2/main#part",
    "redis://:hunter2@db1,db2",
    "redis+quorum:",
    "redis+quorum://",
    "redis+quorum://:hunter2@db1,db2",
    "redis+quorum://:hunter2@db1,db1:6379,db2",
    "redis+quorum://:hunter2@db1,DB1,db2",
    "redis+quorum://:hunter2@db1,,db2",
    "redis+quorum://:hunter2@db1,:hunter2@db2,db3",
    "redis+quorum://:hunter2@db1,db2,db3/abc",
    "redis+quorum://:hunter2@db1,db2,db3?db=1",
    "redis+quorum://:hunter2@db1,db2,db3?generation=0",
    "redis+quorum://:hunter2@db1,db2,db3?generation=1000000000",
    "redis+cluster://:hunter2@db1,db2,db3?generation=2",
    "redis+quorum://:hunter2@a,b,c,d,e,f,g,h,i,j,k",
    "redis+cluster:",
    "redis+cluster://",
    "redis+cluster://:hunter2@",
    "redis+cluster://:hunter2@db1,,db2",
    "redis+cluster://:hunter2@db1,db1:6379",
    "redis+cluster://:hunter2@db1,db2:0",
    "redis+cluster://:hunter2@db1,:hunter2@db2",
    "redis+cluster://:hunter2@db1,db2/1",
    "redis+cluster://:hunter2@db1,db2/name",
    "redis+cluster://:hunter2@db1,db2?db=1",
    "http://:hunter2@db1",
    "local:locks",
    "local://:hunter2@db1/locks",
    "local:/lo%0Acks",
    "local:/locks?db=1",
    "redis://:hunter2%zz@db1",
};

TEST(parse_uri, refuses_what_names_no_server_with_a_subject_and_a_reason) {
  for (const std::string_view text : bad_ones) {
    error_detail why;
    EXPECT_FALSE(parse_uri(text, why).has_value()) << text;
    EXPECT_NE(why.subject, "") << text;
    EXPECT_NE(why.why, "") << text;
  }
}

std::string refusal(std::string_view text) {
  error_detail why;
  EXPECT_FALSE(parse_uri(text, why).has_value()) << text;
  return error{errc::invalid_uri, why}.what();
}

TEST(parse_uri, never_repeats_a_password) {
  for (const std::string_view text : bad_ones) EXPECT_THAT(refusal(text), Not(HasSubstr("hunter2"))) << text;
}

TEST(parse_uri, a_quorum_is_all_of_its_servers_in_one_order_R19) {
  const auto one = parsed("redis+quorum://db3:7003,db1,[::1]:7002/2");
  EXPECT_EQ(one.display, "redis+quorum://[::1]:7002,db1:6379,db3:7003/2");
  EXPECT_EQ(parsed("redis+quorum://DB1:6379,db3:7003,[::1]:7002/2").display, one.display);
  ASSERT_EQ(one.quorum.size(), 3u);
  EXPECT_EQ(std::get<net::tcp_address>(one.quorum[2].where).host, "db3");
  EXPECT_EQ(one.database, 2);
}

TEST(parse_uri, a_quorum_has_the_generation_that_its_uri_says_P26) {
  EXPECT_EQ(parsed("redis+quorum://a,b,c").generation, 1u);
  const auto later = parsed("rediss+quorum://c,b,a/2?generation=7&cacert=/ca.pem");
  EXPECT_EQ(later.generation, 7u);
  EXPECT_EQ(later.display, "rediss+quorum://a:6379,b:6379,c:6379/2?generation=7");
  EXPECT_EQ(parsed("redis+quorum://a,b,c?generation=1").display, parsed("redis+quorum://a,b,c").display);
}

TEST(parse_uri, a_quorum_over_tls_is_that_of_every_server) {
  for (const auto& one : parsed("rediss+quorum://a,b,c?cacert=/ca.pem").quorum) EXPECT_TRUE(one.uses_tls);
}

TEST(parse_uri, an_even_quorum_is_refused_with_its_number_H56) {
  EXPECT_THAT(refusal("redis+quorum://a,b,c,d"), HasSubstr("4 servers"));
}

TEST(parse_uri, the_same_server_twice_is_refused_with_its_address_R20) {
  EXPECT_THAT(refusal("redis+quorum://a,b,A:6379"), HasSubstr("a:6379"));
}

// A password with a character that must be percent-encoded ends up in port, path, query or fragment.
TEST(parse_uri, never_repeats_a_password_that_was_not_encoded) {
  for (const std::string_view text : {
           "redis://app:hunter2/pass@db1",
           "redis://app:12/hunter2@db1",
           "redis://app:hunter2#pass@db1",
           "redis://app:12#hunter2@db1",
           "redis://app:hunter2?pass@db1",
           "redis://app:12?hunter2@db1",
           "redis://app:pass@hunter2:6379@db1",
           "redis://app:hunter2@pass:6379@db1",
           "redis://app:x:hunter2:1/@db1",
           "redis://:hunter2/pass@db1",
           "redis://app/hunter2@db1",
           "redis+unix://app:hunter2#x@/run/redis.sock",
           "redis+unix://app:1?hunter2@/run/redis.sock",
       }) {
    EXPECT_THAT(refusal(text), Not(HasSubstr("hunter2"))) << text;
  }
}

// The host of redis://default:hunter2@db1 was forgotten, most often, or only the @.
TEST(parse_uri, never_repeats_what_stands_where_a_port_belongs) {
  for (const std::string_view text : {
           "redis://default:hunter2",
           "redis://default:12hunter2",
           "redis://default:%2Fhunter2",
           "redis://default:12%2Fhunter2",
           "redis://default:/hunter2",
           "redis://default:12/hunter2",
           "redis://default:?hunter2",
           "redis+sentinel://default:%2Fhunter2",
           "redis+cluster://default:%2Fhunter2",
           "redis://:hunter2",
           "redis://default:hunter2/0",
           "redis+cluster://default:12/hunter2",
           "redis+quorum://default:12/hunter2",
           "redis://default:12#hunter2",
           "redis://default:hunter2#hunter2",
           "redis://default%3Ahunter2",
           "rediss://default:hunter2?key=/k",
           "redis+sentinel://default:hunter2",
           "redis+sentinel://s1:hunter2/main",
           "redis+sentinel://s1,default:hunter2/main",
           "redis+cluster://default:hunter2",
           "redis+quorum://default:hunter2",
           "redis+unix://:hunter2/run/redis.sock",
       }) {
    EXPECT_THAT(refusal(text), Not(HasSubstr("unter2"))) << text;
  }
}

TEST(parse_uri, says_of_what_is_no_port_that_a_host_may_be_missing) {
  error_detail why;
  EXPECT_FALSE(parse_uri("redis://default:hunter2", why));
  EXPECT_EQ(why.subject, "the port");
  EXPECT_THAT(why.why, HasSubstr("behind a password stand an @ and the host"));
}

// What a path may have and a URI may not, is encoded again.
TEST(parse_uri, reads_what_it_displays_of_a_path_with_special_characters) {
  for (const std::string_view text : {"redis+unix:///run/my%20redis.sock", "redis+unix:///run/a%3Fdb=3",
                                      "redis+unix:///run/100%25", "redis+unix:///run/a%23b", "local:/var/my%20locks"}) {
    const auto once = parsed(text);
    const auto again = parsed(once.display);
    EXPECT_EQ(place(again), place(once)) << text;
    EXPECT_EQ(again.display, once.display) << text;
  }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
