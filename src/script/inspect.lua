-- SPDX-License-Identifier: Apache-2.0
-- inspect: who holds the lock, for how long, who waits for it, and who broke it last. Changes nothing.
--
-- KEYS[1]  holder key
-- KEYS[2]  break record key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
--
-- Returns  {0, now, value, pttl, record, waiting, entries}
--                            value: the holder's (at most 1024 bytes), nil when free;
--                            pttl: remaining ms, -1 without an expiry, -2 when free;
--                            record: `v1|token|now_us|by|why`, nil when there is none;
--                            waiting: how many stand in line; entries: the first 100 of them, as wait.lua wrote them
--          {9, now, type}    wrong kind: the key holds this type instead of a string
--
-- One step, so that value, remaining time, line and record belong to the same instant. now is the server's clock.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local found = call('MGET', KEYS[1], KEYS[2])
local value, record = found[1], found[2]
if value then
  value = sub(value, 1, 1024)
else
  local kind = call('TYPE', KEYS[1]).ok
  if kind ~= 'none' then
    return {9, now, kind}
  end
end
if record then
  record = sub(record, 1, 2048)
end

local waiting, entries = 0, {}
if call('TYPE', KEYS[3]).ok == 'zset' and call('TYPE', KEYS[4]).ok == 'hash' then
  waiting = call('ZCARD', KEYS[3])
  for _, owner in ipairs(call('ZRANGE', KEYS[3], 0, 99)) do
    -- One whose other half is lost is dead.
    entries[#entries + 1] = call('HGET', KEYS[4], owner) or nil
  end
end
return {0, now, value, call('PTTL', KEYS[1]), record, waiting, entries}
