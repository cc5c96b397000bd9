-- SPDX-License-Identifier: Apache-2.0
-- resize: say how many permits a semaphore has.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key
-- ARGV[1]  KIND: s and the new size, 1 to 1000000
-- ARGV[2]  not_after: server time in microseconds, 16 digits, or 0 for none
-- ARGV[3]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               it has this size
--          {18, now}         the same, and there may be somebody in line who was not seen: go_on.lua goes on
--          {3, now}          late: not_after has passed; this copy had no effect
--          {9, now, type}    wrong kind: a key holds this type, or the name is used as this kind
--          {10, now, what}   bad argument
--
-- More permits go to those first in line, in the same step (B34). With fewer, whoever holds some keeps them: nobody is
-- let in until so many have come back that it is below its size. Whoever waits for more than there now can ever be is
-- told so by its next look. A copy that comes late must not undo a later resize: the asker takes no answer before
-- `not_after` of each earlier copy has passed (engine/question.hpp). The size stands in the fence and lives as long.
-- The server's clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: counted.lua
-- include: advance.lua

local wanted, not_after = ARGV[1], ARGV[2]
local new_size = string.match(wanted, '^s(%d+)$')
if not new_size or #new_size > 7 or tonumber(new_size) < 1 or tonumber(new_size) > 1000000 then
  return {10, now, 'size'}
end
if not_after ~= '0' then
  if #not_after ~= 16 then
    return {10, now, 'not_after'}
  end
  if now > not_after then
    return {3, now}
  end
end
local wrong = read(wanted)
if wrong then
  return {9, now, wrong}
end
kind, size = wanted, tonumber(new_size)
write_fence(last_stamp(last and '0000000000000000' or now), last and sub(last, 18, 49) or string.rep('0', 32))
if call('EXISTS', KEYS[5]) == 1 then
  call('HSET', KEYS[5], 'kind', kind)
elseif used > 0 then
  used = math.max(used, size) -- Nobody knows what each of them has: full, until all have ended (counted.lua).
end
if not ARGV[3] then
  advance(nil)
  go_on_at(0)
end
return done()
