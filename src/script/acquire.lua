-- SPDX-License-Identifier: Apache-2.0
-- acquire: take the lock now, or say who has it.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key: the last stamp and the owner id that got it, `stamp|owner id`; `|q` behind it: ask the line
-- ARGV[1]  owner id, 32 hex digits, fresh for every entry
-- ARGV[2]  ttl in milliseconds, a whole number above 0
-- ARGV[3]  not_after: server time in microseconds, 16 digits, or 0 for none
-- ARGV[4]  max_ttl in milliseconds
-- ARGV[5]  owner label, escaped
-- ARGV[6]  min_fence: grant only a token above it; 0 or left out when there is no demand
-- ARGV[7]  block: so many tokens behind the granted one are the caller's too, to hand the lock on in its process; left
--          out when there are none
--
-- Returns  now                         granted; the token is now (16 digits, microseconds)
--          {0, now, token}             granted with a token ahead of the clock
--          {1, now, token, pttl}       mine: this owner id holds it already; its expiry stays what it was
--          {2, now, value, pttl}       busy: the holder's value (at most 1024 bytes) and its remaining ms, -1 for ever
--          {3, now}                    late: not_after has passed; this copy had no effect, nothing more (P10)
--          {4, now}                    spent: this owner id was granted before and has ended (P9)
--          {9, now, type}              wrong kind: a key holds this type instead of a string
--          {10, now, what}             bad argument
--          {11, now}                   fence too far: min_fence is more than a year ahead of the server's clock
--          {14, now}                   line: free, but there may be somebody in line; wait.lua knows
--
-- It never queues and does not know the line, so that a lock that nobody waits for costs what it must and no more.
--
-- It must be one step: between a look and a SET of two requests somebody else could be granted, and a lock without
-- its expiry or a token without its grant could be left by a crash. The server's clock (TIME, read once) decides;
-- the client's is never looked at, except that it chose not_after.
--
-- The holder's SET is the first write and a denyoom command: with a full memory nothing happens at all. NX is there
-- for a key of another type, which MGET shows as nil.
--
-- This and release.lua are half of the server's work for a lock, so they do without patterns and string.format where
-- a comparison will do (0.3 and 0.6 us each). Numbers of equal width compare as strings as they do as numbers. What
-- a looser check lets through ("1e3"), the SET refuses, and it is the first write.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, ttl, not_after, max_ttl, label, min_fence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local block = ARGV[7]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
local ttl_ms, most_ms = tonumber(ttl), tonumber(max_ttl)
if not ttl_ms or not most_ms or ttl_ms < 1 or ttl_ms > most_ms or ttl_ms % 1 ~= 0 then
  return {10, now, 'ttl'}
end
if #label > 768 then
  return {10, now, 'owner label'}
end
if block and (#block > 4 or string.find(block, '%D')) then
  return {10, now, 'block'}
end
if not_after ~= '0' then
  if #not_after ~= 16 then
    return {10, now, 'not_after'}
  end
  if now > not_after then
    return {3, now}
  end
end

local found = call('MGET', KEYS[1], KEYS[2])
local value, last = found[1], found[2]

if value then
  local ours = sub(value, 1, 3) == 'v1|'
  local pttl = call('PTTL', KEYS[1])
  if ours and sub(value, 4, 36) == owner .. '|' then
    -- A write that changes nothing: WAIT speaks of the last write of its connection (Redis 7.2 and later), and the
    -- grant was another one's.
    if pttl > 0 then
      call('PEXPIRE', KEYS[1], pttl)
    end
    return {1, now, sub(value, 37, 52), pttl}
  end
  if last and sub(last, 18, 49) == owner then
    return {4, now}
  end
  -- A clock that stepped back, or somebody's PERSIST, must not keep it for hours (H5, C8). To max_ttl, and not to less
  -- than the holder was granted: its max_ttl may be another (P13). A foreign value is somebody else's lock: left alone.
  if ours and (pttl == -1 or pttl > most_ms) then
    local most = math.max(most_ms, tonumber(string.match(value, '^%d+', 54)) or 0)
    pttl = pttl < 0 and most or math.min(pttl, most)
    call('PEXPIRE', KEYS[1], pttl)
  end
  return {2, now, sub(value, 1, 1024), pttl}
end

-- The stamp: max(last + 1, now, min_fence + 1). `last` is longer than `now`, so the comparison is also true when
-- its stamp is now. Never tostring(): it would turn the sum into 1.7e+15.
local stamp = now
if last then
  if #last > 49 then
    if sub(last, 18, 49) == owner then
      return {4, now}
    end
    return {14, now}
  end
  if sub(last, 18) == owner then
    return {4, now}
  end
  if last > now then
    local before = string.match(last, '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)|')
    if before and before < '9007199254740991' then
      stamp = string.format('%.0f', tonumber(before) + 1)
    end
  end
else
  local kind = call('TYPE', KEYS[2]).ok
  if kind ~= 'none' then
    return {9, now, kind}
  end
end
if min_fence and min_fence ~= '0' then
  local floor = tonumber(min_fence)
  if not floor or #min_fence > 16 or string.find(min_fence, '%D') then
    return {10, now, 'min_fence'}
  end
  if floor > tonumber(now) + 31536000000000 then
    return {11, now}
  end
  if floor >= tonumber(stamp) then
    stamp = string.format('%.0f', floor + 1)
  end
end

local grant = 'v1|' .. owner .. '|' .. stamp .. '|' .. ttl .. '|' .. now .. '|' .. label
if not call('SET', KEYS[1], grant, 'NX', 'PX', ttl) then
  return {9, now, call('TYPE', KEYS[1]).ok}
end
-- A week, and as long as the stamp is ahead of the clock, so that it is not forgotten before the clock is past it.
if stamp == now and not block then
  call('SET', KEYS[2], stamp .. '|' .. owner, 'PX', '604800000')
  return now
end
-- The last stamp is the end of the block: whoever comes next is above all of it (P14).
local final = block and string.format('%.0f', tonumber(stamp) + tonumber(block)) or stamp
local ahead = math.ceil((tonumber(final) - tonumber(now)) / 1000)
call('SET', KEYS[2], final .. '|' .. owner, 'PX', string.format('%.0f', 604800000 + ahead))
return stamp == now and now or {0, now, stamp}
