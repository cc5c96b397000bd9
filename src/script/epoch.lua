-- SPDX-License-Identifier: Apache-2.0
-- epoch: for how long nothing may be granted here, because the server may have forgotten locks.
--
-- KEYS[1]  epoch key: `v1|run id|replication id|since_us|hold_ms`
-- ARGV[1]  hold_ms: how long leases may live on that are forgotten: the caller's max_ttl and what clocks may differ
-- ARGV[2]  'first': no lock was ever kept here, so that none can be forgotten; empty or left out: who knows
-- ARGV[3]  'look': the caller has no leases, and asks for none; left out: it may have some
--
-- Returns  now                         nothing to wait for
--          {8, now, remaining ms, ms since it began, 'restart' or 'promotion'}
--                                      quarantine; 'promotion' also of a restarted primary that ever had a replica
--          an error, READONLY          it is a replica
--          {9, now, type}              wrong kind: the key holds this type instead of a string
--          {10, now, what}             bad argument
--
-- An epoch is one run of one server as a primary. A new one begins when the server starts or is promoted: what it does
-- not know then, it has forgotten. Then nobody grants for the longest lease that a forgotten holder may have (H24,
-- H25). It is noticed here, by whoever comes first:
--
--   run id  replication id  second id    the epoch
--   same    same                         is the same
--   same    other           all zeros    is the same: a first replica came, or the last one left long ago (P19)
--   same    other           set          is new, from now on: it was a replica for a time, and forgot (P20)
--   other or key absent     all zeros    is new since the server's start: an old server has no wait at first use (P17)
--   other or key absent     set          is new, from now on: nobody knows when it was promoted, or whether: a primary
--                                        that ever had a replica restarts with a second id, too
--
-- It lasts for the largest hold_ms that was ever said, because a lease of that client may be the forgotten one (P18).
-- Who only looks has none: its own is not kept, and is used where nobody has said another (hold_ms is 0 then).
-- The key lives 400 days from its last use, put off once a day: where it is gone, a server with a second id is new to
-- whoever comes, and one who comes seldom and does not wait would never be granted anything. The clients keep the
-- quarantine; here only this key is changed.
--
-- It must be one step, so that no two clients see the same epoch begin at two times. The server's clock decides. A full
-- memory stops the writes but not the answer, which is reckoned from INFO: renewals must go on.
local call, pcall, sub, match = redis.call, redis.pcall, string.sub, string.match

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

local hold, first = ARGV[1], ARGV[2] == 'first'
if #hold == 0 or #hold > 12 or string.find(hold, '%D') then
  return {10, now, 'hold'}
end
local found = call('TYPE', KEYS[1]).ok
if found ~= 'none' and found ~= 'string' then
  return {9, now, found}
end

local server, replication = call('INFO', 'server'), call('INFO', 'replication')
local run, uptime = match(server, 'run_id:(%x+)'), match(server, 'uptime_in_seconds:(%-?%d+)')
local id, second_id = match(replication, 'master_replid:(%x+)'), match(replication, 'master_replid2:(%x+)')
if not run or not uptime or not id or not second_id then
  return {10, now, 'INFO'}
end
-- Whatever is granted behind this answer is by the primary that it has become since, and must not count.
if match(replication, 'role:slave') then
  return {err = "READONLY You can't ask a read only replica for its epoch."}
end
local was_promoted = match(second_id, '[^0]') ~= nil

local value = call('GET', KEYS[1]) or ''
local old_run, old_id, since, old_hold = match(value, '^v1|(%x+)|(%x+)|(%d+)|(%d+)$')
local kept = old_hold and #old_hold <= 12 and old_hold or '0'
if ARGV[3] ~= 'look' and tonumber(kept) < tonumber(hold) then
  kept = hold
end
if tonumber(kept) > 0 then
  hold = kept
end
if first then
  since = '0000000000000000'
elseif old_run ~= run or #since ~= 16 or old_id ~= id and was_promoted then
  since = now
  -- Whole seconds of two readings of a clock: it may be nearly one second younger than it says.
  if not was_promoted and tonumber(uptime) > 1 then
    since = string.format('%016.0f', tonumber(now) - (tonumber(uptime) - 1) * 1000000)
  end
elseif since > now then
  since = now -- The clock went back: a quarantine must not last for the step (H5).
end

local epoch = 'v1|' .. run .. '|' .. id .. '|' .. since .. '|' .. kept
if epoch ~= value then
  pcall('SET', KEYS[1], epoch, 'PX', '34560000000')
elseif call('PTTL', KEYS[1]) < 34473600000 then
  pcall('PEXPIRE', KEYS[1], '34560000000')
end

local remaining = math.ceil((tonumber(since) - tonumber(now)) / 1000) + tonumber(hold)
if remaining <= 0 then
  return now
end
local ago = math.floor((tonumber(now) - tonumber(since)) / 1000)
return {8, now, remaining, ago, was_promoted and 'promotion' or 'restart'}
