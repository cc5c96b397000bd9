// SPDX-License-Identifier: Apache-2.0
// The rule of docs/acl.md, for `holdfast help acl`. Written by tools/acl, which reads it out of the scripts.
#pragma once

namespace holdfast::cli {

inline constexpr const char* acl_rule =
    "ACL SETUSER app-lock reset on >SECRET resetkeys resetchannels ~hf:* &hf:* -@all +hello +auth +ping +select +time "
    "+info +evalsha +eval +script|exists +script|load +subscribe +del +exists +get +hdel +hget +hgetall +hlen +hset "
    "+mget +pexpire +pttl +publish +pubsub|numsub +set +type +zadd +zcard +zrange +zrangebyscore +zrank +zrem +zscore";
// What some need besides.
inline constexpr const char* acl_of_listing = "+scan";
inline constexpr const char* acl_of_replicas = "+wait";
inline constexpr const char* acl_of_cluster = "+cluster|slots +cluster|myid +ssubscribe +spublish +pubsub|shardnumsub";
inline constexpr const char* acl_of_sentinels = "+sentinel|get-master-addr-by-name +sentinel|myid";
inline constexpr const char* acl_of_sentinels_doctor = "+sentinel|master";

}  // namespace holdfast::cli
