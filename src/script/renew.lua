-- SPDX-License-Identifier: Apache-2.0
-- renew: keep a lease alive that is still ours.
--
-- KEYS[1]  holder key
-- KEYS[2]  break record key
-- KEYS[3]  quorum record (vote.lua), for a vote; left out for a lock
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits
-- ARGV[3]  ttl in milliseconds, a whole number above 0
-- ARGV[4]  the caller's quorum record, with KEYS[3]
--
-- Returns  now                   renewed: it lives min(ttl, the ttl it was acquired with) from now on
--          {5, now, 'gone'}      no such lock any more
--          {5, now, 'taken'}     another owner id, another token of ours, or something that is no lock of ours
--          {6, now}              broken on purpose: not renewed any more
--          {10, now, what}       bad argument
--          {17, now, record}     other quorum: this server belongs to another list of servers now (P26)
--
-- Compare and PEXPIRE must be one step, or the lock could pass to another between them and we would keep that one's
-- alive. The owner id alone is not enough: the same id may have been granted again after a loss (P9), so the token is
-- compared too. It never re-creates a lost lock, and writes nothing but PEXPIRE: a full memory cannot stop it, and
-- with 0 or less it would delete, so that is refused (B39). The server's clock decides.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token, ttl = ARGV[1], ARGV[2], ARGV[3]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 then
  return {10, now, 'token'}
end
local ttl_ms = tonumber(ttl)
if not ttl_ms or ttl_ms < 1 or ttl_ms % 1 ~= 0 then
  return {10, now, 'ttl'}
end

local found = call('MGET', KEYS[1], KEYS[2])
local value, record = found[1], found[2]

local is_ours = value and sub(value, 1, 53) == 'v1|' .. owner .. '|' .. token .. '|'
-- Or somebody broke it at once, and another one since.
if record and (sub(record, 4, 19) == token or not is_ours and string.find(record, '^v1[|%d]+[%x,]*' .. owner)) then
  return {6, now}
end
if not is_ours then
  -- The key may also hold a list, which MGET shows as nil.
  return {5, now, (value or call('EXISTS', KEYS[1]) == 1) and 'taken' or 'gone'}
end

-- One of an earlier generation is of a server that was brought back with old data: the lease is not refused for that.
if KEYS[3] then
  local kept = call('GET', KEYS[3])
  if kept and kept ~= ARGV[4] then
    local theirs, ours = string.match(kept, '^v1|(%d+)|'), string.match(ARGV[4], '^v1|(%d+)|')
    if not theirs or not ours or tonumber(theirs) >= tonumber(ours) then
      return {17, now, sub(kept, 1, 4096)}
    end
  end
  call('PEXPIRE', KEYS[3], sub(ARGV[4], 1, 5) == 'v1|1|' and '604800000' or '34560000000') -- As vote.lua.
end

local most = tonumber(string.match(value, '^%d+', 54))
if most and most >= 1 and most < ttl_ms then
  ttl = most
end
call('PEXPIRE', KEYS[1], ttl)
return now
