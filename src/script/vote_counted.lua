-- SPDX-License-Identifier: Apache-2.0
-- vote_counted: one node's vote for permits of a semaphore, or a place under a shared lock, of a quorum.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key
-- KEYS[6]  quorum record, as in vote.lua
-- KEYS[7]  wanted key: there for a second while whoever is first in line found no room
-- KEYS[8]  break record key, with `k`
-- ARGV[1]  to ARGV[8] as in vote.lua
-- ARGV[9]  mode: `r` to read, `w` to write, `p` for permits
-- ARGV[10] permits: how much of the room it takes; of a reader 1, of a writer all
-- ARGV[11] KIND, as in counted.lua: what the caller takes the name for
-- ARGV[12] standing: `h` it is first in line, `k` it holds a lease and has lost this vote, `-` it is neither
--
-- Returns  as vote.lua, and
--          {2, now, value, pttl}  busy: no room, or whoever is first in line wants it; value and remaining ms are those
--                                 of the holder whose lease ends first, empty and -2 when there is none
--          {16, now, size}        other size: the semaphore has another size here, or fewer permits than are wanted
--
-- As vote.lua, for what counted.lua keeps: a node gives at most as many permits as there are, and never the votes of a
-- reader and of a writer at once. How many votes make that true of all nodes together: core/quorum_votes.hpp. Tokens
-- are found as there: whoever holds later shares a node with whoever held before, and that node knows the stamp.
--
-- It does not look at a line either (P25). But readers that come one after another would keep a writer out for ever, as
-- small requests do a large one (B34). So whoever is first in the line of those who wait says so, and where it found no
-- room nobody else is let in for a second, in which it comes again.
--
-- One step, and ZADD is a denyoom command, as in vote.lua. What read() takes out before has ended in any case.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: ballot.lua
-- include: counted.lua
-- include: counted_view.lua

local mode, permits, asked, standing = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[12]
if mode ~= 'r' and mode ~= 'w' and mode ~= 'p' or not permits or permits < 1 or permits % 1 ~= 0 then
  return {10, now, 'mode'}
end
if not string.find(asked, mode == 'p' and '^s%d+$' or '^w%d+$') or #asked > 8 or asked == 's0' then
  return {10, now, 'kind'}
end
if standing ~= '-' and standing ~= 'h' and standing ~= 'k' then
  return {10, now, 'standing'}
end

for i = 6, 7 do
  local found = call('TYPE', KEYS[i]).ok
  if found ~= 'none' and found ~= 'string' then
    return {9, now, found}
  end
end
local found = call('MGET', KEYS[6], KEYS[7])
local kept, wanted = found[1], found[2]
if is_of_another_quorum(kept) then
  return {17, now, sub(kept or '', 1, 4096)}
end

local wrong = read(asked)
if wrong then
  return {9, now, wrong}
end
local held = held_token(owner)
if held then
  -- It was given to the writer that is a reader now, and would be a writer's for as long as that one reads.
  if standing == 'k' and mode == 'r' then
    read_only(owner)
  end
  return {1, now, held, math.ceil((tonumber(call('ZSCORE', KEYS[1], owner)) - tonumber(now)) / 1000)}
end
local broken = standing == 'k' and call('MGET', KEYS[8])[1]
if broken and string.find(broken, '^v1|%d+|%d+|[%x,]*' .. owner) then -- As vote.lua.
  return {6, now}
end
if last and sub(last, 18, 49) == owner then
  return {4, now}
end
if asked ~= kind or permits > size then
  return {16, now, size}
end

local entry = {id = owner, ttl = ttl, mode = mode, permits = permits, label = label}
if not has_room(entry) or wanted and standing == '-' then
  if standing == 'h' then
    pcall('SET', KEYS[7], '1', 'PX', '1000')
  end
  local value, pttl = shown(max_ttl)
  return {2, now, value, pttl}
end

if is_too_far() then
  return {11, now}
end
local stamp = next_token(last, standing == 'k')
entry.granted_us = granted_us(stamp)
local done = put(entry, stamp, tonumber(now) + ttl_ms * 1000)
if done.err then
  return done
end
call('SET', KEYS[2], stamp .. '|' .. owner .. fence_mark(), 'PX', fence_ms(stamp))
if kept then
  call('PEXPIRE', KEYS[6], record_ms())
else
  call('SET', KEYS[6], record, 'PX', record_ms())
end
if wanted and standing == 'h' then
  call('DEL', KEYS[7])
end
return stamp == now and now or {0, now, stamp}
