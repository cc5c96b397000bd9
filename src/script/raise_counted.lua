-- SPDX-License-Identifier: Apache-2.0
-- raise_counted: the second phase of a vote for permits or a place under a shared lock (vote_counted.lua).
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  holders key
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits: the largest that a node answered to the round's vote
-- ARGV[3]  KIND, as in counted.lua
--
-- Returns  as raise.lua; of what was broken at its expiry the flag tells
--
-- As raise.lua, for what counted.lua keeps: the stamp goes first, and the expiry stays what the vote's was. Others may
-- have been given larger stamps since; those stay.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token, kind = ARGV[1], ARGV[2], ARGV[3]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 or string.find(token, '%D') or token > '9007199254740991' then
  return {10, now, 'token'}
end
if not string.find(kind, '^[sw]%d+$') then
  return {10, now, 'kind'}
end
if call('TYPE', KEYS[1]).ok ~= 'zset' or call('TYPE', KEYS[3]).ok ~= 'hash' then
  return {5, now}
end

local ends, entry = call('ZSCORE', KEYS[1], owner), call('HGET', KEYS[3], owner)
local has = entry and string.match(entry, '^%d+|%a|[^b]|v1|%x+|(%d+)|')
if not ends or tonumber(ends) <= tonumber(now) or not has or #has ~= 16 or has > token then
  return {5, now}
end

local last = call('GET', KEYS[2])
if not last or sub(last, 1, 16) < token then
  local ahead = math.max(0, math.ceil((tonumber(token) - tonumber(now)) / 1000))
  call('SET', KEYS[2], token .. '|' .. owner .. '|' .. kind, 'PX', string.format('%.0f', 604800000 + ahead))
end
if has ~= token then
  call('HSET', KEYS[3], owner, (string.gsub(entry, '^(%d+|%a|.|v1|%x+|)%d+', '%1' .. token)))
end
return now
