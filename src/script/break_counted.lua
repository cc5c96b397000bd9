-- SPDX-License-Identifier: Apache-2.0
-- break_counted: end somebody else's hold on a semaphore or a shared lock, on purpose and on the record.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key
-- KEYS[6]  break record key
-- ARGV[1]  the token that was seen, 16 digits
-- ARGV[2]  'expiry': it is not renewed any more and ends with its remaining ttl; 'now': its permits are free at once
-- ARGV[3]  by: the breaker's label, escaped
-- ARGV[4]  why, escaped
-- ARGV[5]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  as break.lua; {12, now}, not held, also when others hold it, but nobody under this token
--
-- As break.lua, for what counted.lua keeps: the other holders notice nothing. The flag in the holder's entry comes
-- first, and is the break with 'expiry'. The server's clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: counted.lua
-- include: advance.lua

local token, mode, by, why = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if #token ~= 16 or string.find(token, '%D') then
  return {10, now, 'token'}
end
if mode ~= 'expiry' and mode ~= 'now' then
  return {10, now, 'mode'}
end
if #by > 768 or string.find(by, '[%c|]') then
  return {10, now, 'by'}
end
if #why > 768 or string.find(why, '[%c|]') then
  return {10, now, 'why'}
end

-- include: break_note.lua

local noted, earlier = call('TYPE', KEYS[6]).ok, call('MGET', KEYS[6])[1]
local wrong = noted ~= 'none' and noted ~= 'string' and noted or read()
if wrong then
  return {9, now, wrong}
end
local owner
for _, id in ipairs(call('ZRANGE', KEYS[1], 0, -1)) do
  if held_token(id) == token then
    owner = id
    break
  end
end
if not owner then
  return {12, now}
end

local was_broken = mark_broken(owner)
if mode == 'expiry' and was_broken then
  return now
end
if mode == 'now' then
  take_out(owner)
end
if not was_broken then
  pcall('SET', KEYS[6], break_note(owner, earlier), 'PX', '604800000')
end
last = next_stamp(token)
mark_spent(owner, last)
if mode == 'now' and not ARGV[5] then
  advance(nil)
end
return done()
