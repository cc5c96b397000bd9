-- SPDX-License-Identifier: Apache-2.0
-- raise: the second phase of a vote. The token that a majority needs is written over the smaller one of this node.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits: the largest that a node answered to the round's vote
--
-- Returns  now              this node has the vote under that token, now or since before
--          {5, now}         not mine: no such vote here any more, or one with a larger token, or one that was broken
--          {10, now, what}  bad argument
--
-- The expiry stays what the vote's was. The stamp goes first: written alone, by a server that dies between the two, it
-- costs a number; the holder's value alone would be a token that the next round does not know of (C2).
--
-- What was broken at its expiry since it was given is not raised: nobody renews it any more, so it must not count. Its
-- stamp tells, which is above its token since then (break.lua).
--
-- Compare and SET must be one step, or the vote could pass to another between them.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token = ARGV[1], ARGV[2]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 or string.find(token, '%D') or token > '9007199254740991' then
  return {10, now, 'token'}
end

local found = call('MGET', KEYS[1], KEYS[2])
local value, last = found[1], found[2]
local has = value and sub(value, 1, 36) == 'v1|' .. owner .. '|' and sub(value, 37, 52)
if not has or #has ~= 16 or has > token then
  return {5, now}
end
if last and sub(last, 1, 16) > has then
  return {5, now}
end

if not last or sub(last, 1, 16) < token then
  local ahead = math.max(0, math.ceil((tonumber(token) - tonumber(now)) / 1000))
  call('SET', KEYS[2], token .. '|' .. owner, 'PX', string.format('%.0f', 604800000 + ahead))
end
if has ~= token then
  call('SET', KEYS[1], sub(value, 1, 36) .. token .. sub(value, 53), 'KEEPTTL')
end
return now
