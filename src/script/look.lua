-- SPDX-License-Identifier: Apache-2.0
-- look: a waiter's check. Takes the lock if it is this waiter's turn, else says its place in line.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key (of a counted kind)
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  not_after: server time in microseconds, 16 digits, or 0 for none
-- ARGV[3]  max_ttl in milliseconds
-- ARGV[4]  the process: the name of its channel
-- ARGV[5]  's': it has subscribed to it, '-': it has not; with `q` behind it: quarantine, nothing is granted and
--          nothing claimed (epoch.lua)
-- ARGV[6]  KIND, as in counted.lua: what the caller takes the name for (of a counted kind), else empty or absent
-- ARGV[7..] owner ids of others of the process that wait in this line, 256 at most: those that it looks for, too
--
-- Returns  {0, now, token, [1]}        granted, as in wait.lua
--          {1, now, token, ttl}        mine: the line had granted it; this is the claim. It lives its ttl from now on
--          {3, now}                    late: not_after has passed; this copy had no effect
--          {7, now, ticket, ahead, look_ms, value, pttl, [missing]}
--                                      queued, as in wait.lua. missing, if it looked for others: an array of the
--                                      places behind ARGV[6] of those who must look for themselves, because they are
--                                      not in line, or something about them has changed
--          {9, now, type}              wrong kind
--          {10, now, what}             bad argument
--          {16, now, size}             other size: it waits for more permits than the semaphore has; out of the line
--          {15, now}                   not in line: it missed its claim, or three looks, or the line is lost; or what
--                                      it was granted must not be claimed (quarantine)
--
-- It never adds an entry: a look that was delayed in the network behind its waiter's `leave` would queue a ghost (P5).
-- It is also how the line moves when no script runs at the right time: after an expiry, behind silent waiters (P2, P3).
-- One step, and the server's clock decides.
local call, pcall, try, sub = redis.call, redis.pcall, pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, not_after, max_ttl, process = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local told, is_quarantine = sub(ARGV[5], 1, 1), sub(ARGV[5], 2) == 'q'
local asked = ARGV[6] ~= '' and ARGV[6] or nil
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if not tonumber(max_ttl) or tonumber(max_ttl) < 1 then
  return {10, now, 'max_ttl'}
end
if #process == 0 or #process == 32 or #process > 128 or string.find(process, '[%c|]') then
  return {10, now, 'process'}
end
if told ~= 's' and told ~= '-' or #ARGV[5] > 1 and not is_quarantine then
  return {10, now, 'told'}
end
if not_after ~= '0' then
  if #not_after ~= 16 then
    return {10, now, 'not_after'}
  end
  if now > not_after then
    return {3, now}
  end
end

-- The claim of an exclusive lock, which a hand-off waits for: before the rest is made ready, and without a question
-- about keys that it does not touch. A full memory stops neither write. Nobody had to stand by for it (P3).
local granted = not asked and not is_quarantine and call('MGET', KEYS[1])[1]
if granted and sub(granted, 1, 36) == 'v1|' .. owner .. '|' then
  local its_ttl = string.match(granted, '^%d+', 54)
  call('PEXPIRE', KEYS[1], its_ttl)
  pcall('HDEL', KEYS[4], 'standby')
  return {1, now, sub(granted, 37, 52), tonumber(its_ttl)}
end

-- include: kind.lua
-- include: kind_view.lua
-- include: advance.lua
-- include: place.lua

local wrong = read(asked)
local held = held_token(owner)
if held and not is_quarantine then
  return mine(owner, held)
end
if wrong then
  return {9, now, wrong}
end
local entry = call('HGET', KEYS[4], owner)
if held or not entry or not call('ZSCORE', KEYS[3], owner) then
  return {15, now}
end

-- The size may have changed since. Who wants more than there can ever be must not block the line.
if asked and tonumber(string.match(entry, '|%a(%d+)|[^|]*$')) > size then
  call('ZREM', KEYS[3], owner)
  call('HDEL', KEYS[4], owner)
  if not is_quarantine then
    advance(nil)
  end
  return {16, now, size}
end

told = heard_by(process, told)
hear(owner, entry, process, told)

local token, more
if is_free() and not is_quarantine then
  token, more = advance(owner)
  if token then
    stand_in(owner)
    return {0, now, token, more and 1 or nil}
  end
end
-- Its own wait may have run out by the server's clock: then advance has taken it out.
if not call('ZSCORE', KEYS[3], owner) then
  return {15, now}
end
local answer = place(owner, process, told, max_ttl, more)
if #ARGV < 7 then
  return answer
end

-- The heartbeat above is that of the whole process. Whoever is still in line as it was needs nothing else; but the
-- first of the line look at an expiry that is near, and have to be told when (place.lua).
local as_they_are = 'v1|' .. process .. '|' .. told .. (told == 's' and '|' or '')
local is_near = answer[5] < 5000 and not is_quarantine
local missing = {}
for i = 7, math.min(#ARGV, 262) do
  local id = ARGV[i]
  local other = call('HGET', KEYS[4], id)
  if not other or sub(other, 1, #as_they_are) ~= as_they_are or not call('ZSCORE', KEYS[3], id) or
    asked and tonumber(string.match(other, '|%a(%d+)|[^|]*$')) > size or
    is_near and call('ZRANK', KEYS[3], id) < (told == 's' and 8 or 4) then
    missing[#missing + 1] = i - 6
  elseif told ~= 's' then
    hear(id, other, process, told)
  end
end
answer[8] = missing
return answer
