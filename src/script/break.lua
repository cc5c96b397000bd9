-- SPDX-License-Identifier: Apache-2.0
-- break: end somebody else's lease, on purpose and on the record.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key, `stamp|owner id`
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  break record key
-- ARGV[1]  the token that was seen, 16 digits
-- ARGV[2]  'expiry': it is not renewed any more and ends with its remaining ttl; 'now': it is free at once
-- ARGV[3]  by: the breaker's label, escaped
-- ARGV[4]  why, escaped
-- ARGV[5]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               broken, by this call or an earlier one
--          {18, now}         the same, and there may be somebody in line who was not seen: go_on.lua goes on
--          {9, now, type}    wrong kind: no lock of ours; `string` for a foreign value, else the type. Nothing changed
--          {10, now, what}   bad argument
--          {12, now}         not held: nothing to break
--          {13, now}         changed hands: held under another token; nothing changed
--
-- Compare and break must be one step, or a lock that changed hands a moment ago would be broken unseen. A break raises
-- the stamp, so that whatever the broken holder still writes is older than every later token, and it spends the
-- holder's owner id. With 'now' the first write is DEL, what follows cannot fail it, and the line moves at once; with
-- 'expiry' the record is the break, so its SET comes first and fails as a whole when memory is full, and the line moves
-- when its first looks at the expiry. The server's clock decides.
local call, pcall, sub, find = redis.call, redis.pcall, string.sub, string.find

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local token, mode, by, why = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if #token ~= 16 or find(token, '%D') then
  return {10, now, 'token'}
end
if mode ~= 'expiry' and mode ~= 'now' then
  return {10, now, 'mode'}
end
if #by > 768 or find(by, '[%c|]') then
  return {10, now, 'by'}
end
if #why > 768 or find(why, '[%c|]') then
  return {10, now, 'why'}
end

local found = call('MGET', KEYS[1], KEYS[2], KEYS[5])
local holder, before, record = found[1], found[2], found[3]

if not holder then
  local kind = call('TYPE', KEYS[1]).ok
  if kind ~= 'none' then
    return {9, now, kind}
  end
  return {12, now}
end
local base = string.match(holder, '^v1|[^|]+|(%d+)|')
if not base or #base ~= 16 or sub(holder, 36, 36) ~= '|' then
  return {9, now, 'string'}
end
-- Any token of the holder's block will do: the holder may have handed the lock on in its process. None between the
-- holder's and the last stamp was ever anybody else's.
local last_stamp = sub(before or '', 1, 16)
if token ~= base and (token < base or token > last_stamp) then
  return {13, now}
end
for _, i in ipairs({2, 5}) do
  local kind = call('TYPE', KEYS[i]).ok
  if kind ~= 'none' and kind ~= 'string' then
    return {9, now, kind}
  end
end

token = base

-- A repeated break keeps the record of the first: who and when.
local known = record and sub(record, 1, 20) == 'v1|' .. token .. '|'
if mode == 'expiry' and known then
  return now
end

-- include: exclusive.lua
-- include: advance.lua
-- include: break_note.lua

last = before
local entry = break_note(sub(holder, 4, 35), record)

if mode == 'expiry' then
  call('SET', KEYS[5], entry, 'PX', '604800000')
  -- Its claim may be to come, and sets the ttl in the value: at most what is left.
  local left, its_ttl, rest = call('PTTL', KEYS[1]), string.match(holder, '^(%d+)()', 54)
  if its_ttl and left > 0 and left < tonumber(its_ttl) then
    call('SET', KEYS[1], sub(holder, 1, 53) .. string.format('%.0f', left) .. sub(holder, rest), 'KEEPTTL')
  end
else
  call('DEL', KEYS[1])
  if not known then
    pcall('SET', KEYS[5], entry, 'PX', '604800000')
  end
end
last = next_stamp(token)
mark_spent(sub(holder, 4, 35), last)
if mode == 'now' and not ARGV[5] then
  advance(nil)
end
return done()
