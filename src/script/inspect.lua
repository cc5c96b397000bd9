-- SPDX-License-Identifier: Apache-2.0
-- inspect: who holds the lock, for how long, who waits for it, and who broke it last. Changes nothing.
--
-- KEYS[1]  holder key
-- KEYS[2]  break record key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key
-- KEYS[6]  fence key
-- KEYS[7]  quorum record (vote.lua), for a vote; left out for a lock
-- ARGV[1]  the caller's quorum record, with KEYS[7]
--
-- Returns  {0, now, value, pttl, record, waiting, entries}
--                            value: the holder's (at most 1024 bytes), nil when free;
--                            pttl: remaining ms, -1 without an expiry, -2 when free;
--                            record: `v1|token|now_us|owner ids|by|why`, nil when there is none;
--                            waiting: how many stand in line, without those of the first 100 who are gone;
--                            entries: the others of these, as wait.lua wrote them
--          {0, now, nil, -2, record, waiting, entries, kind, used, holders}
--                            of a counted kind: `sN` or `wN`; the permits that are taken; of the first 100
--                            holders, each two: the entry, as counted.lua wrote it, empty when it is lost, and
--                            the remaining ms
--          {9, now, type}    wrong kind: the key holds this type
--          {17, now, record} other quorum: this server belongs to another list of servers, or the caller's is not open
--                            here yet (P26); what is kept, empty when that is none
--
-- One step, so that value, remaining time, line and record belong to the same instant. now is the server's clock.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- Of a list that is not this server's nothing is held here, whatever its own servers say.
if KEYS[7] then
  local kept = call('GET', KEYS[7])
  if kept ~= ARGV[1] and (kept or sub(ARGV[1], 1, 5) ~= 'v1|1|') then
    return {17, now, sub(kept or '', 1, 4096)}
  end
end

local found = call('MGET', KEYS[1], KEYS[2], KEYS[6])
local value, record, fence = found[1], found[2], found[3]
local type_of_holder = call('TYPE', KEYS[1]).ok
if type_of_holder ~= 'string' and type_of_holder ~= 'zset' and type_of_holder ~= 'none' then
  return {9, now, type_of_holder}
end
if record then
  record = sub(record, 1, 4096)
end

-- Its connection is gone, and a release passes it over (advance.lua, P1). Where PUBSUB is denied it is believed.
local gone = {}
local function is_gone(entry)
  local process = string.match(entry, '^v1|([^|]+)|s|')
  if process and gone[process] == nil then
    local listening = sub(process, -1) == '}' and pcall('PUBSUB', 'SHARDNUMSUB', process) or
      pcall('PUBSUB', 'NUMSUB', process)
    gone[process] = not listening.err and tonumber(listening[2]) == 0
  end
  return gone[process]
end

local waiting, entries = 0, {}
if call('TYPE', KEYS[3]).ok == 'zset' and call('TYPE', KEYS[4]).ok == 'hash' then
  waiting = call('ZCARD', KEYS[3])
  for _, owner in ipairs(call('ZRANGE', KEYS[3], 0, 99)) do
    local entry = call('HGET', KEYS[4], owner)
    -- One whose other half is lost is dead.
    if not entry or is_gone(entry) then
      waiting = waiting - 1
    else
      entries[#entries + 1] = entry
    end
  end
end

local kind = string.match(fence or '', '^%d+|%x+|([sw]%d+)$')
if not kind and not fence and call('TYPE', KEYS[5]).ok == 'hash' then
  kind = call('HGET', KEYS[5], 'kind') or nil
end
-- As counted.lua: what nothing says to be ours.
local first = type_of_holder == 'zset' and not kind and call('ZRANGE', KEYS[1], 0, 0)[1]
if first and (#first ~= 32 or string.find(first, '%X')) then
  return {9, now, 'sorted set'}
end
if value or not kind and type_of_holder == 'none' then
  return {0, now, value and sub(value, 1, 1024), call('PTTL', KEYS[1]), record, waiting, entries}
end

local used, holders = 0, {}
if type_of_holder == 'zset' then
  local has_hash = call('TYPE', KEYS[5]).ok == 'hash'
  local function kept(field)
    return has_hash and call('HGET', KEYS[5], field) or ''
  end
  -- As counted.lua: without the hash it is full until their leases have ended.
  used = tonumber(kept('used'))
  used = used and used >= 0 and used < 1e7 and used or tonumber(sub(kind or '', 2)) or 0
  local living = call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
  for i = 1, #living, 2 do
    holders[#holders + 1] = kept(living[i])
    holders[#holders + 1] = math.ceil((tonumber(living[i + 1]) - tonumber(now)) / 1000)
  end
  -- Those whose lease has ended are there until a script that may write comes by.
  for _, owner in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
    used = used - (tonumber(string.match(kept(owner), '^%d+')) or 0)
  end
  used = #living == 0 and 0 or used
end
return {0, now, false, -2, record, waiting, entries, kind or '', used, holders}
