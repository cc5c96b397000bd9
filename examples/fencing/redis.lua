-- SPDX-License-Identifier: Apache-2.0
-- A guard for a value in Redis: compares the fencing token with the largest seen, raises it, and writes, in one step.
--
-- KEYS[1]  the largest token seen, KEYS[2] the value. In a cluster both need one hash tag: {account:7}:fence.
-- ARGV[1]  the token; ARGV[2] the new value. Without ARGV[2] it is the raise.
-- Answers the value as it is afterwards (nil: there is none), so that the raise reads, too.
-- Errors:  STALE stale fencing token X, current Y   Nothing was changed. An error and not a 0, so that nobody can
--                                                   overlook it.
--          ERR not a fencing token: ...             Nothing was changed.
-- The fence has no expiry on purpose: it belongs to your data, not to the lock.

-- 1 to 2^53 - 1, the numbers that Lua counts exactly. Compared as numbers: as text "9" is above "10".
local function token_of(text)
  local number = #text <= 16 and string.match(text, '^[1-9]%d*$') and tonumber(text)
  return number and number <= 9007199254740991 and number
end

if #KEYS ~= 2 or #ARGV < 1 or #ARGV > 2 then
  return redis.error_reply('ERR two keys, fence and value, and one or two arguments: the token, the new value')
end
local mine = token_of(ARGV[1])
if not mine then
  return redis.error_reply('ERR not a fencing token: \'' .. string.gsub(ARGV[1], '%c', '?') ..
    '\'; pass HOLDFAST_TOKEN or lease.token() as it is')
end
local seen = redis.call('GET', KEYS[1])
if seen then
  local largest = token_of(seen)
  if not largest then
    return redis.error_reply('ERR the fence ' .. KEYS[1] .. ' holds no token; is the key used for something else?')
  end
  if mine < largest then
    return redis.error_reply('STALE stale fencing token ' .. ARGV[1] .. ', current ' .. seen)
  end
end
redis.call('SET', KEYS[1], ARGV[1])  -- The text as it came: Lua would print a large number as 1.7e+15.
if ARGV[2] then
  redis.call('SET', KEYS[2], ARGV[2])
end
return redis.call('GET', KEYS[2])
