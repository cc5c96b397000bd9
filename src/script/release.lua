-- SPDX-License-Identifier: Apache-2.0
-- release: give the lock back, if it is still ours.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key, `stamp|owner id`
-- ARGV[1]  owner id, 32 hex digits
-- ARGV[2]  token, 16 digits; empty when it is not known: a clean-up after an acquire whose reply was lost
--
-- Returns  now               released: it was ours and is free
--          {5, now}          not ours: no such lock, or another's. The lock was not changed
--          {10, now, what}   bad argument
--
-- Compare and delete must be one step. With GET and then DEL our lock could expire in between, and the DEL would free
-- the next holder's. DEL is the first write, so a full memory cannot stop it.
--
-- The owner id is then spent: a copy of its acquire that is still on its way must not lock again (P9). The grant has
-- usually left the id in the fence already, so that nothing is written here. When it has not (this clean-up overtook
-- the acquire), it is written now, keeping the stamp, because stamps never go back. That write may fail (full memory)
-- and the release stands: not_after is the second net. The server's clock decides.
local call, sub = redis.call, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local owner, token = ARGV[1], ARGV[2]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
if token ~= '' and #token ~= 16 then
  return {10, now, 'token'}
end

local found = call('MGET', KEYS[1], KEYS[2])
local value, last = found[1], found[2]

-- Fields of fixed width, so that no id or token can pass for the beginning of a longer one.
local ours = value and sub(value, 1, 36) == 'v1|' .. owner .. '|'
  and (token == '' or sub(value, 37, 53) == token .. '|')
if ours then
  call('DEL', KEYS[1])
end

if not last or sub(last, 18) ~= owner then
  local stamp = last and sub(last, 1, 16) or ''
  if #stamp ~= 16 or string.find(stamp, '%D') then
    stamp = ours and sub(value, 37, 52) or '0000000000000000'
  end
  local keep = 604800000
  if stamp > now then
    keep = keep + math.ceil((tonumber(stamp) - tonumber(now)) / 1000)
  end
  keep = string.format('%.0f', keep)
  if last then
    redis.pcall('SET', KEYS[2], stamp .. '|' .. owner, 'PX', keep)
  else
    -- NX: a key of another type looks absent, and is not ours to overwrite.
    redis.pcall('SET', KEYS[2], stamp .. '|' .. owner, 'NX', 'PX', keep)
  end
end

if ours then
  return now
end
return {5, now}
