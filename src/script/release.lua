-- SPDX-License-Identifier: Apache-2.0
-- release: give the lock back, if it is still ours, and let the line move.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key, `stamp|owner id`, with `|q` behind it while there may be a line
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits
-- ARGV[3]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               released: it was ours, and is free or the next one's
--          {18, now}         the same, and there may be somebody in line who was not seen: go_on.lua goes on
--          {5, now}          not ours: no such lock, or another's. The lock was not changed
--          {10, now, what}   bad argument
--
-- Compare and delete must be one step. With GET and then DEL our lock could expire in between, and the DEL would free
-- the next holder's. DEL is the first write, so a full memory cannot stop it. The next in line is granted in the same
-- step, or somebody who never waited could come in between.
--
-- The owner id is then spent: a copy of its acquire that is still on its way must not lock again (P9). The grant has
-- usually left the id in the fence already, so that nothing is written here. When it has not (a leave of somebody else
-- overwrote it, or the fence was lost), it is written now, keeping the stamp, because stamps never go back. That write
-- may fail (full memory) and the release stands: not_after is the second net. The server's clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token = ARGV[1], ARGV[2]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 then
  return {10, now, 'token'}
end

local found = call('MGET', KEYS[1], KEYS[2])
local holder, fence = found[1], found[2]

-- Fields of fixed width, so that no id or token can pass for the beginning of a longer one.
if not holder or sub(holder, 1, 53) ~= 'v1|' .. owner .. '|' .. token .. '|' then
  return {5, now}
end
call('DEL', KEYS[1])
if fence and sub(fence, 18) == owner then
  return now
end

-- include: exclusive.lua
-- include: advance.lua

-- Nothing may fail from here on. The key is gone; the fence was read.
last = fence
if sub(last or '', 18, 49) ~= owner then
  mark_spent(owner, token)
end
-- Still none: it is of another type, and a grant would take its place; or it may not be written.
if not last then
  return now
end
if not ARGV[3] then
  advance(nil)
end
return done()
