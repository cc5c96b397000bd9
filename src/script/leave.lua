-- SPDX-License-Identifier: Apache-2.0
-- leave: this owner id wants nothing any more. Takes it out of the line; if it was granted meanwhile, releases.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key (of a counted kind)
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               it stood in line or held the lock, and does not any more
--          {18, now}         the same, and there may be somebody in line who was not seen: go_on.lua goes on
--          {5, now}          nothing of it was there, or what it was had been lost (counted.lua: it is taken out)
--          {10, now, what}   bad argument
--
-- Sent by a waiter that gives up, and after an acquire whose outcome is unknown: there no token is known, so only the
-- owner id is compared. It leaves no ghost: whatever was there is gone when it answers, and the line moves on (P2).
-- What is not there yet is spent: a copy of its acquire that is still on its way must not lock or queue (P9). That mark
-- is a SET behind other writes, so neither a full memory nor a lack of replicas stops it alone. An ACL may, which lets
-- no copy lock either; not_after is the second net. The first writes are ZREM, HDEL and DEL, which a full memory cannot
-- stop. The server's clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: kind.lua
-- include: advance.lua

local owner = ARGV[1]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end

-- A key of another type is not ours: nothing of this id can be in it. Whatever else refuses this (too few replicas, an
-- ACL) is an error, because the place is still there; but what it holds is given back.
local in_line = pcall('ZREM', KEYS[3], owner)
local in_waiters = pcall('HDEL', KEYS[4], owner)
local refused
for _, done in ipairs({in_line, in_waiters}) do
  refused = type(done) == 'table' and sub(done.err, 1, 9) ~= 'WRONGTYPE' and done or refused
end
local was_waiting = in_line == 1 or in_waiters == 1

local wrong, is_odd = read(nil, true)
local token = held_token(owner)
local was_there = token or is_left_over(owner)
if was_there then
  take_out(owner)
end
if refused then
  return refused
end

if not was_waiting and not wrong and (not last or sub(last, 18, 49) ~= owner) then
  mark_spent(owner, token or '0000000000000000')
end

-- Nobody had to stand by for it, and its process is there (place.lua).
local standby = pcall('HGET', KEYS[4], 'standby')
if type(standby) == 'string' and sub(standby, -32) == owner then
  pcall('HDEL', KEYS[4], 'standby')
end

if is_free() and not wrong and not is_odd and (was_there or was_waiting) and not ARGV[2] then
  advance(nil)
end
if token or was_waiting then
  return done()
end
return {5, now}
