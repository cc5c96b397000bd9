-- SPDX-License-Identifier: Apache-2.0
-- wait: take the lock if it is free and nobody is ahead, else a place in line.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key (of a counted kind)
-- ARGV[1]  owner id, 32 hex digits, fresh for every entry
-- ARGV[2]  ttl in milliseconds, a whole number above 0
-- ARGV[3]  not_after: server time in microseconds, 16 digits, or 0 for none
-- ARGV[4]  max_ttl in milliseconds
-- ARGV[5]  owner label, escaped
-- ARGV[6]  min_fence: grant only a token above it; 0 for no demand
-- ARGV[7]  the process: the name of its channel
-- ARGV[8]  's': it has subscribed to it, '-': it has not, 't': only try, never queue; with `q` behind it: quarantine,
--          nothing is granted and nothing claimed (epoch.lua)
-- ARGV[9]  claim window in milliseconds
-- ARGV[10] wait_until: server time, 16 digits, after which it must not be granted any more; 0 for none
-- ARGV[11] the ticket that it had before; 0 for none
-- ARGV[12] x: all of an exclusive lock; r: to read, w: to write, p: permits of a semaphore
-- ARGV[13] how many permits that is, 1 to the size; of an exclusive lock the block, as in acquire.lua, or empty
-- ARGV[14] KIND, as in counted.lua: what the caller takes the name for (of a counted kind)
--
-- Returns  {0, now, token, [1]}        granted; 1: there may be room for somebody else in line who was not seen, and
--                                      go_on.lua goes on
--          {1, now, token, ttl}        mine: it was granted to this owner id before. It lives its ttl from now on
--          {2, now, value, pttl}       busy (only to a try): the holder's value, and its remaining ms, -1 for ever
--          {3, now}                    late: not_after has passed; this copy had no effect, nothing more (P10)
--          {4, now}                    spent: this owner id was granted before and has ended (P9)
--          {7, now, ticket, ahead, look_ms, value, pttl}
--                                      queued: so many stand ahead; look again after look_ms; value is '' and pttl -2
--                                      while nobody holds it
--          {9, now, type}              wrong kind: a key holds this type
--          {10, now, what}             bad argument
--          {11, now}                   fence too far: min_fence is more than a year ahead of the server's clock
--          {14, now}                   line (only to a try): free, but somebody is in line to take it
--          {15, now}                   not in line (only in quarantine): it was granted to this owner id before, and
--                                      that must not be claimed
--          {16, now, size}             other size: the semaphore has this size, and the caller takes it for another
--          {18, now}                   unseen (only to a try): there may be room, for somebody in line who was not seen
--                                      or, if that is nobody, for the caller: ask again
--
-- One step: between a look and an entry of two requests the lock could be freed, and nobody would tell us (H19). An
-- entry that exists keeps its ticket, so a copy after a lost reply changes nothing. A ticket that was had before is
-- taken back, but never one above a fresh stamp (P7). The server's clock decides.
local call, pcall, try, sub = redis.call, redis.pcall, pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: kind.lua
-- include: kind_view.lua
-- include: advance.lua
-- include: place.lua

local owner, ttl, not_after, max_ttl, label, min_fence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local process, told, window, wait_until, ticket = ARGV[7], sub(ARGV[8], 1, 1), ARGV[9], ARGV[10], ARGV[11]
local is_quarantine = sub(ARGV[8], 2) == 'q'
local mode, permits, asked = ARGV[12], ARGV[13] or '', ARGV[14]

local function is_whole(text, most)
  return #text > 0 and #text <= most and not string.find(text, '%D')
end

if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if not is_whole(ttl, 12) or not is_whole(max_ttl, 12) or tonumber(ttl) < 1 or tonumber(ttl) > tonumber(max_ttl) then
  return {10, now, 'ttl'}
end
if #label > 768 or string.find(label, '[%c|]') then
  return {10, now, 'owner label'}
end
if not is_whole(min_fence, 16) then
  return {10, now, 'min_fence'}
end
if #process == 0 or #process == 32 or #process > 128 or string.find(process, '[%c|]') then
  return {10, now, 'process'}
end
if told ~= 's' and told ~= '-' and told ~= 't' or #ARGV[8] > 1 and not is_quarantine then
  return {10, now, 'told'}
end
if not is_whole(window, 12) or tonumber(window) < 1 or tonumber(window) > tonumber(ttl) then
  return {10, now, 'window'}
end
if wait_until ~= '0' and (#wait_until ~= 16 or not is_whole(wait_until, 16)) then
  return {10, now, 'wait_until'}
end
if ticket ~= '0' and (#ticket ~= 16 or not is_whole(ticket, 16)) then
  return {10, now, 'ticket'}
end
if #mode ~= 1 or string.find(mode, '%A') or permits ~= '' and (not is_whole(permits, 7) or tonumber(permits) < 1) then
  return {10, now, 'mode'}
end
if not_after ~= '0' then
  if #not_after ~= 16 then
    return {10, now, 'not_after'}
  end
  if now > not_after then
    return {3, now}
  end
end

local wrong = read(asked)
if wrong then
  return {9, now, wrong}
end
local held = held_token(owner)
if held and is_quarantine then
  return {15, now}
end
if held then
  return mine(owner, held)
end
if last and sub(last, 18, 49) == owner then
  return {4, now}
end
if asked and (asked ~= kind or tonumber(permits) > size) then
  return {16, now, size}
end
if tonumber(min_fence) > tonumber(now) + 31536000000000 then
  return {11, now}
end

local me = {id = owner, ttl = ttl, min_fence = min_fence, mode = mode, permits = tonumber(permits) or 0, label = label}
local token, more, kept
if is_free() and not is_quarantine then
  token, more, kept = advance(owner)
  if not token and not kept and has_room(me) then
    local refused
    token, refused = grant(me, ttl)
    if not token then
      return refused
    end
  end
  if token then
    stand_in(owner)
    return {0, now, token, more and 1 or nil}
  end
end

if told == 't' then
  if more then
    return {18, now}
  end
  local value, pttl = shown(max_ttl)
  if value == '' then
    return {14, now}
  end
  return {2, now, value, pttl}
end

told = heard_by(process, told)
local has_come_back = false
local before = call('HGET', KEYS[4], owner)
if before and call('ZSCORE', KEYS[3], owner) then
  hear(owner, before, process, told)
else
  local stamp = next_stamp('0')
  if ticket == '0' or ticket > stamp then
    ticket = stamp
  end
  has_come_back = ticket ~= stamp and (wait_until == '0' or now <= wait_until)
  call('ZADD', KEYS[3], ticket, owner)
  local entry = {'v1', process, ear_of(told), ttl, window, wait_until, min_fence, now, mode .. permits, label}
  call('HSET', KEYS[4], owner, table.concat(entry, '|'))
  mark_line(stamp)
end
-- It may stand before whoever was in its way, where there is room for it: nobody would tell it so (C7).
if has_come_back and is_free() and not is_quarantine then
  token, more = advance(owner)
  if token then
    return {0, now, token, more and 1 or nil}
  end
end
return place(owner, process, told, max_ttl, more)
