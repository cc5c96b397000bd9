-- SPDX-License-Identifier: Apache-2.0
-- release_counted: give our permits back, if they are still ours, and let the line move.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits
-- ARGV[3]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               released: they were ours, and are free or the next one's
--          {18, now}         the same, and there may be somebody in line who was not seen: go_on.lua goes on
--          {5, now}          not ours: no such hold, or another token. Nothing was changed
--          {10, now, what}   bad argument
--
-- As release.lua, for what counted.lua keeps. Compare and take out must be one step, and whoever fits now is granted in
-- the same one. ZREM is the first write, so a full memory cannot stop it. The owner id is then spent (P9). The server's
-- clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: counted.lua
-- include: advance.lua

local owner, token = ARGV[1], ARGV[2]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 then
  return {10, now, 'token'}
end

local wrong, is_odd = read(nil, true)
if wrong or held_token(owner) ~= token then
  return {5, now}
end
take_out(owner)
if not last or sub(last, 18, 49) ~= owner then
  mark_spent(owner, token)
end
if not ARGV[3] and not is_odd then
  advance(nil)
end
return done()
