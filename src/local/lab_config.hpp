// SPDX-License-Identifier: Apache-2.0
// The configuration files of a lab's servers, as text. Files and not arguments: sentinels and cluster nodes write what
// they learn into theirs, and find it there when they are started again.
#pragma once

#include "local/lab_record.hpp"

#include <string>
#include <string_view>

namespace holdfast::local {

// For a primary or replica. `directory` is the lab's.
std::string server_config(const lab_record& lab, const lab_member& of, const std::string& directory);

// For a sentinel. It is told of the others and of the replicas at once, which it would else learn within some seconds;
// their ids are made of `salt`, 32 hex digits, the same for all of them and new for each lab.
std::string sentinel_config(const lab_record& lab, const lab_member& of, const std::string& directory,
                            std::string_view salt);

// A value for redis.conf, in quotes: a path may hold spaces, quotes and line breaks.
std::string in_quotes(std::string_view value);

}  // namespace holdfast::local
