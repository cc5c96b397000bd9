-- SPDX-License-Identifier: Apache-2.0
-- renew_counted: keep permits that are still ours.
--
-- KEYS[1]  holder key
-- KEYS[2]  break record key
-- KEYS[3]  holders key
-- KEYS[4]  quorum record (vote.lua), for a vote; left out for a lock
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits
-- ARGV[3]  ttl in milliseconds, a whole number above 0
-- ARGV[4]  the caller's quorum record, with KEYS[4]
--
-- Returns  now                   renewed: they live min(ttl, the ttl they were acquired with) from now on
--          {5, now, 'gone'}      no such hold any more
--          {5, now, 'taken'}     another token of ours, or a key that is none of ours
--          {6, now}              broken on purpose: not renewed any more
--          {10, now, what}       bad argument
--          {17, now, record}     other quorum: this server belongs to another list of servers now (P26)
--
-- As renew.lua, for what counted.lua keeps. Each holder renews its own expiry only, so that a dead one's place comes
-- back (B7). One whose lease has ended is gone, whether or not somebody has cleared it away. What was broken at once is
-- named by the break record, and what was broken at its expiry by its entry, so that several can be. PEXPIRE comes
-- first: ZADD is refused with a full memory, but not behind a write. The server's clock decides.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 then
  return {10, now, 'token'}
end
if not ttl or ttl < 1 or ttl % 1 ~= 0 then
  return {10, now, 'ttl'}
end

local record = call('MGET', KEYS[2])[1]
local function lost(why)
  if record and string.find(record, '^v1|%d+|%d+|[%x,]*' .. owner) then
    return {6, now}
  end
  return {5, now, why}
end
local kind, data_kind = call('TYPE', KEYS[1]).ok, call('TYPE', KEYS[3]).ok
if kind == 'none' or data_kind == 'none' then
  return lost('gone')
end
if kind ~= 'zset' or data_kind ~= 'hash' then
  return lost('taken')
end
local ends, entry = call('ZSCORE', KEYS[1], owner), call('HGET', KEYS[3], owner)
if not ends or not entry or tonumber(ends) <= tonumber(now) then
  return lost('gone')
end
local flag, seen, most = string.match(entry, '^%d+|%a|(.)|v1|%x+|(%d+)|(%d+)|')
if seen ~= token then
  return lost('taken')
end
if flag == 'b' then
  return {6, now}
end

-- As renew.lua.
if KEYS[4] then
  local kept = call('GET', KEYS[4])
  if kept and kept ~= ARGV[4] then
    local theirs, ours = string.match(kept, '^v1|(%d+)|'), string.match(ARGV[4], '^v1|(%d+)|')
    if not theirs or not ours or tonumber(theirs) >= tonumber(ours) then
      return {17, now, sub(kept, 1, 4096)}
    end
  end
  call('PEXPIRE', KEYS[4], sub(ARGV[4], 1, 5) == 'v1|1|' and '604800000' or '34560000000') -- As vote.lua.
end

ttl = math.min(ttl, tonumber(most))
local left = call('PTTL', KEYS[1])
if left < 0 then -- Somebody's PERSIST, as in counted.lua.
  left = math.ceil((tonumber(call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]) - tonumber(now)) / 1000)
end
local lives = string.format('%.0f', math.max(left, ttl))
call('PEXPIRE', KEYS[1], lives)
call('PEXPIRE', KEYS[3], lives)
call('ZADD', KEYS[1], string.format('%.0f', tonumber(now) + ttl * 1000), owner)
return now
