-- SPDX-License-Identifier: Apache-2.0
-- quorum_record: closes a server for one list of servers, or opens it for another (`holdfast quorum replace`, P26).
--
-- KEYS[1]  quorum record: `v1|generation|open|servers` or `..|closed|..` (vote.lua)
-- ARGV[1]  the record to write
-- ARGV[2]  the record that may be replaced; empty: none is there
--
-- Returns  now                written, or it was there
--          {9, now, type}     wrong kind: the key holds this type instead of a string
--          {10, now, what}    bad argument
--          {17, now, record}  another record is there; empty when none is
--
-- Compare and SET must be one step: two people may replace at once. It lives for 400 days, because a closed server that
-- forgets it votes for the old list again, and one that was opened does not vote without it (vote.lua).
local call = redis.call

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)

if not string.find(ARGV[1], '^v1|%d%d?%d?%d?%d?%d?%d?%d?%d?|%l+|.') or #ARGV[1] > 4096 then
  return {10, now, 'quorum record'}
end
local kind = call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'string' then
  return {9, now, kind}
end
local kept = call('GET', KEYS[1]) or ''
if kept ~= ARGV[1] and kept ~= ARGV[2] then
  return {17, now, string.sub(kept, 1, 4096)}
end
call('SET', KEYS[1], ARGV[1], 'PX', '34560000000')
return now
