-- SPDX-License-Identifier: Apache-2.0
-- vote: one node's vote for a lock that a majority of independent servers gives together.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key: the last stamp and the owner id that got it, `stamp|owner id`
-- KEYS[3]  quorum record: to which list of servers this one belongs, `v1|generation|open|A:1,B:2,C:3`; or `|closed|`
-- KEYS[4]  wanted key: there for a second while whoever is first in line found it busy
-- KEYS[5]  break record key, with `k`
-- ARGV[1]  owner id, 32 hex digits, fresh for every round
-- ARGV[2]  ttl in milliseconds, a whole number above 0
-- ARGV[3]  not_after: server time in microseconds, 16 digits, or 0 for none
-- ARGV[4]  max_ttl in milliseconds
-- ARGV[5]  owner label, escaped
-- ARGV[6]  min_fence: grant only a token above it; 0 when there is no demand
-- ARGV[7]  proposal: the token that the caller would like all nodes to give, 16 digits
-- ARGV[8]  the caller's quorum record
-- ARGV[9]  standing: `h` it is first in line, `k` it holds a lease and has lost this vote, `-` it is neither
--
-- Returns  now                         granted, under now as its token
--          {0, now, token}             granted under that token: the proposal, or what this node needs instead
--          {1, now, token, pttl}       mine: this owner id has this node's vote already
--          {2, now, value, pttl}       busy: the holder's value (at most 1024 bytes) and its remaining ms, -1 for ever;
--                                      empty and -2: free, but whoever is first in line wants it
--          {3, now}                    late: not_after has passed. This copy had no effect, nothing more (P10)
--          {4, now}                    spent: this owner id was granted before and has ended (P9)
--          {6, now}                    broken: somebody broke the vote that is asked for again
--          {9, now, type}              wrong kind: a key holds this type, or the name is used as this kind
--          {10, now, what}             bad argument
--          {11, now}                   fence too far: min_fence or the proposal is more than a year ahead of the clock
--          {17, now, record}           other quorum: this server belongs to another list, or to none yet (P26)
--
-- A vote is an exclusive lock on one node, with the keys of one: renew, release, leave and inspect are the same. It
-- neither queues nor looks at a line, because lines of several nodes do not make one (P25). But who takes it again as
-- soon as it is free would keep those who wait out for ever: so whoever is first of them says so, and where it found it
-- busy nobody else is let in for a second, in which it comes again. Its grant ends that.
--
-- The token. Every node takes the proposal when it is above its last stamp and not behind its clock; where a majority
-- does, the round is over. Otherwise each says what it needs, and raise.lua writes the largest to a majority before
-- anybody sees it (P23). So any two majorities have a node in common that knows the earlier token, and the clock that a
-- proposal may not be behind stands in for a stamp that is lost with its node (P24).
--
-- A vote that is given again to its holder (`k`) is the same grant: it has the lease's token again, also when the clock
-- is past it, so that whoever shows or breaks the lock knows it by the number that its holder knows. Only where a
-- larger one was given since is it a new one, because stamps never go back (C2).
--
-- The record. A server without one belongs to the first list that votes there, if that is of generation 1. A list of a
-- later generation begins with `holdfast quorum replace` (quorum_record.lua), never with a vote: the list before it may
-- not be closed yet, and the two have majorities without a node in common. So a server votes for a later generation
-- only where its record says so, and whoever wins without it opens it there. It lives for a week after the last vote,
-- of a later generation for 400 days: nobody votes where it is forgotten.
--
-- It must be one step for the reasons that acquire.lua has, and the holder's SET is the first write and a denyoom
-- command for them, too: with a full memory nothing happens at all.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: ballot.lua

local standing = ARGV[9]
if standing ~= '-' and standing ~= 'h' and standing ~= 'k' then
  return {10, now, 'standing'}
end

for i = 1, 4 do
  local kind = call('TYPE', KEYS[i]).ok
  if kind ~= 'none' and kind ~= 'string' then
    return {9, now, kind}
  end
end
local found = call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local value, last, kept, wanted = found[1], found[2], found[3], found[4]

if is_of_another_quorum(kept) then
  return {17, now, sub(kept or '', 1, 4096)}
end
-- A name is used as one kind (counted.lua), also while nobody holds it.
local mark = last and sub(last, 51, 51) or ''
if mark ~= '' and mark ~= 'q' then
  return {9, now, mark == 's' and 'semaphore' or 'shared lock'}
end

if value then
  local ours = sub(value, 1, 3) == 'v1|'
  local pttl = call('PTTL', KEYS[1])
  if ours and sub(value, 4, 36) == owner .. '|' then
    return {1, now, sub(value, 37, 52), pttl}
  end
  if last and sub(last, 18, 49) == owner then
    return {4, now}
  end
  local most = math.max(most_ms, ours and tonumber(string.match(value, '^%d+', 54)) or 0) -- As acquire.lua.
  if ours and (pttl == -1 or pttl > most) then
    pttl = most
    call('PEXPIRE', KEYS[1], pttl)
  end
  if standing == 'h' then
    pcall('SET', KEYS[4], '1', 'PX', '1000')
  end
  return {2, now, sub(value, 1, 1024), pttl}
end
-- A vote that somebody broke is not given again to whoever holds the lock with the others: an operator breaks one
-- server after another, and is told "broken" when a majority is (P13d). The mark of a spent owner id would not do,
-- because the next one's leave takes it.
local broken = standing == 'k' and call('MGET', KEYS[5])[1]
if broken and string.find(broken, '^v1|%d+|%d+|[%x,]*' .. owner) then
  return {6, now}
end
if last and sub(last, 18, 49) == owner then
  return {4, now}
end
if wanted and standing == '-' then
  return {2, now, '', -2}
end

if is_too_far() then
  return {11, now}
end
local stamp = next_token(last, standing == 'k')

local grant = 'v1|' .. owner .. '|' .. stamp .. '|' .. ttl .. '|' .. granted_us(stamp) .. '|' .. label
call('SET', KEYS[1], grant, 'PX', ttl)
call('SET', KEYS[2], stamp .. '|' .. owner, 'PX', fence_ms(stamp))
if kept then
  call('PEXPIRE', KEYS[3], record_ms())
else
  call('SET', KEYS[3], record, 'PX', record_ms())
end
if wanted and standing == 'h' then
  call('DEL', KEYS[4])
end
return stamp == now and now or {0, now, stamp}
