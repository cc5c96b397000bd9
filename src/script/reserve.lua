-- SPDX-License-Identifier: Apache-2.0
-- reserve: more tokens for who has the lock, to hand it on in its process for longer, if nobody waits outside (P14).
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key, `stamp|owner id`, with `|q` behind it while there may be a line
-- KEYS[3]  break record key
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token of the grant, 16 digits
-- ARGV[3]  last: the last token that is the caller's, 16 digits
-- ARGV[4]  block: so many behind that
--
-- Returns  now               they are the caller's now, and nobody stood in line
--          {5, now}          not ours; or somebody may wait, it is being broken, the fence is not what the caller left
--                            there, or the last of them would be ahead of the clock. Nothing was changed
--          {10, now, what}   bad argument
--
-- Compare and SET must be one step: who is granted in between would have one of these tokens, and who came to the line
-- would be overlooked. The fence is compared as a whole, so a copy of this that comes late does nothing. None of the
-- tokens is ahead of the server's clock, by which a server that lost its data grants larger ones (C2). SET is the only
-- write, and a full memory stops it: then the line has its turn as without this.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token, last, block = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if #token ~= 16 then
  return {10, now, 'token'}
end
if #last ~= 16 or string.find(last, '%D') then
  return {10, now, 'last'}
end
if #block > 4 or string.find(block, '%D') then
  return {10, now, 'block'}
end

local found = call('MGET', KEYS[1], KEYS[2], KEYS[3])
local value, fence, record = found[1], found[2], found[3]
if not value or sub(value, 1, 53) ~= 'v1|' .. owner .. '|' .. token .. '|' or fence ~= last .. '|' .. owner then
  return {5, now}
end
local final = string.format('%.0f', tonumber(last) + tonumber(block))
if final > now or record and sub(record, 4, 19) == token then
  return {5, now}
end
call('SET', KEYS[2], final .. '|' .. owner, 'PX', '604800000')
return now
