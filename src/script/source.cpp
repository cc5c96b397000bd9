// SPDX-License-Identifier: Apache-2.0
#include "script/source.hpp"

#include "base/assert.hpp"
#include "holdfast_scripts.hpp"

namespace holdfast::script {

namespace {

// In the order of `id`, so that find() is an index.
constexpr std::array<source, count> sources{{
    {id::acquire, "acquire", acquire_lua, acquire_lua_sha1},
    {id::renew, "renew", renew_lua, renew_lua_sha1},
    {id::release, "release", release_lua, release_lua_sha1},
    {id::inspect, "inspect", inspect_lua, inspect_lua_sha1},
    {id::break_lock, "break", break_lua, break_lua_sha1},
    {id::wait, "wait", wait_lua, wait_lua_sha1},
    {id::look, "look", look_lua, look_lua_sha1},
    {id::leave, "leave", leave_lua, leave_lua_sha1},
    {id::go_on, "go_on", go_on_lua, go_on_lua_sha1},
    {id::reserve, "reserve", reserve_lua, reserve_lua_sha1},
    {id::wait_counted, "wait", wait_counted_lua, wait_counted_lua_sha1},
    {id::look_counted, "look", look_counted_lua, look_counted_lua_sha1},
    {id::leave_counted, "leave", leave_counted_lua, leave_counted_lua_sha1},
    {id::go_on_counted, "go_on", go_on_counted_lua, go_on_counted_lua_sha1},
    {id::renew_counted, "renew_counted", renew_counted_lua, renew_counted_lua_sha1},
    {id::release_counted, "release_counted", release_counted_lua, release_counted_lua_sha1},
    {id::break_counted, "break_counted", break_counted_lua, break_counted_lua_sha1},
    {id::downgrade, "downgrade", downgrade_lua, downgrade_lua_sha1},
    {id::resize, "resize", resize_lua, resize_lua_sha1},
    {id::epoch, "epoch", epoch_lua, epoch_lua_sha1},
    {id::vote, "vote", vote_lua, vote_lua_sha1},
    {id::raise, "raise", raise_lua, raise_lua_sha1},
    {id::quorum_record, "quorum_record", quorum_record_lua, quorum_record_lua_sha1},
    {id::vote_counted, "vote_counted", vote_counted_lua, vote_counted_lua_sha1},
    {id::raise_counted, "raise_counted", raise_counted_lua, raise_counted_lua_sha1},
}};

}  // namespace

const source& find(id which) {
  const auto& found = sources[static_cast<std::size_t>(which)];
  HOLDFAST_ASSERT(found.which == which);
  return found;
}

std::span<const source> all() { return sources; }

std::span<const source> usual() { return std::span{sources}.first<3>(); }

}  // namespace holdfast::script
