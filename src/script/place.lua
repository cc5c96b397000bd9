-- SPDX-License-Identifier: Apache-2.0
-- place: what wait and look share (`-- include: place.lua`, behind advance.lua): the claim, and what a waiter is told
-- about its place in line. `try` is Lua's pcall: acl_check_cmd raises an error where a command was renamed.
local mine, stand_in, heard_by, ear_of, hear, mark_line, place

local deaf_us = 600000000 -- So long after a message was refused nobody counts on one.
local fence_ms = 604800000

-- It is ours already: a grant of the line that we take now, or an earlier copy of this request. It lives its whole ttl
-- from now on; and nobody had to stand by for it.
mine = function(owner, token)
  local standby = pcall('HGET', KEYS[4], 'standby')
  if type(standby) == 'string' and sub(standby, -32) == owner then
    call('HDEL', KEYS[4], 'standby')
  end
  return {1, now, token, tonumber(claim(owner))}
end

-- A look finds room behind a grant that lapsed: whoever was told to stand by for that and did not look is silent, and
-- so are the others of the process that did not claim it. None of them need cost a window of its own (P3). To stand by
-- gives a tenth of a second for the network, and more to who is so far away that its window is longer than a second: a
-- quarter of the rest, as its window is four round trips (P4). The window of the claim had that.
has_missed = function(entry)
  local standby = call('HGET', KEYS[4], 'standby') or ''
  if entry.looked >= sub(standby, 1, 16) then
    return false
  end
  local until_us, process = string.match(standby, '^%d+|(%d+)|([^|]+)')
  local due = string.match(standby, entry.id .. '|(%d+)')
  local on_its_way = 100000 + math.max(tonumber(entry.window) - 1000, 0) * 250
  return process == entry.process and now > until_us or due and tonumber(now) > tonumber(due) + on_its_way
end

-- Who was told to stand by for a grant, and has got in without that, does not look any more: the next two who are
-- there at that time do (P3).
stand_in = function(owner)
  local standby = call('HGET', KEYS[4], 'standby')
  local at = standby and string.match(standby, owner .. '|(%d+)')
  if at and at > now then
    call_two(0, nil, tonumber(at), 0)
  end
end

-- Who of those ahead is there to be granted: how many, 8 at most, how many of them still wait in `pttl`, 4 at most, and
-- the first. A hundred killed ones in front must not keep those behind them from looking when the holder's lease ends
-- (B28), nor a few who have given up by then, or who are silent: they are stopped, or their host is.
local function live_ahead(ahead, pttl)
  local live, staying, first = 0, 0, nil
  local at = pttl > 0 and string.format('%.0f', tonumber(now) + pttl * 1000) or now
  if ahead > 0 then
    for _, id in ipairs(call('ZRANGE', KEYS[3], 0, math.min(ahead, 128) - 1)) do
      local text = call('HGET', KEYS[4], id)
      local entry = entry_of(id, text)
      if entry and silence_of(entry) <= silent_us and (entry.told ~= 's' or listens(entry)) then
        live, first = live + 1, first or entry
        staying = staying + (entry_of(id, text, at) and 1 or 0)
        if live == 8 or staying == 4 then
          break
        end
      end
    end
  end
  return live, staying, first
end

-- It says that it has subscribed, but nobody has: only its server side is gone, as behind a proxy. It looks and lives;
-- as `s` each release would pass it over. Where PUBSUB is denied it is believed.
heard_by = function(process, told)
  return told == 's' and not listens({process = process}) and '-' or told
end

ear_of = function(told)
  return told == 's' and told or '-' .. now
end

-- Whether it can be told may have changed since it came; and that somebody looks for one who cannot is written down.
hear = function(owner, entry, process, told)
  local ear = 'v1|' .. process .. '|' .. ear_of(told) .. '|'
  if sub(entry, 1, #ear) ~= ear then
    call('PEXPIRE', KEYS[4], 60000) -- As in place.
    call('HSET', KEYS[4], owner, (string.gsub(entry, '^v1|[^|]+|[s-]%d*|', function() return ear end)))
  end
end

-- Every process that ever waited has a field, and only an entry's own field goes with it. Where somebody always waits
-- the key never ends: now and then whoever looks takes out those who have not looked for so long that they are dead. An
-- ACL of an earlier version denies HLEN or HGETALL; then they stay.
local function sweep()
  local fields = pcall('HLEN', KEYS[4])
  if type(fields) ~= 'number' or fields <= 2 * call('ZCARD', KEYS[3]) + 64 then
    return
  end
  local since = tonumber(now) - tonumber(call('HGET', KEYS[4], 'swept') or 0)
  if since >= 0 and since <= dead_us then -- Below 0: the clock went back.
    return
  end
  call('HSET', KEYS[4], 'swept', now)
  local all = pcall('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    local name, looked = all[i], all[i + 1]
    local is_time = #looked == 16 and not string.find(looked, '%D')
    local is_process = is_time and #name ~= 32 and name ~= 'deaf' and name ~= 'swept'
    if is_process and tonumber(now) - tonumber(looked) > dead_us then
      call('HDEL', KEYS[4], name)
    end
  end
end

-- The owner id beside the stamp stays: it is the last that was granted.
mark_line = function(stamp)
  write_fence(stamp, last and #last >= 49 and sub(last, 18, 49) or string.rep('0', 32), true)
end

-- Touches everything of the line and answers {7, now, ticket, ahead, look_ms, value, pttl}. When to look again is the
-- server's to say, because it knows which expiry matters (P2): the first four who are there by then, of the first
-- eight, look when the next lease ends, one after another, since nobody tells them of it. Where nobody can be told of a
-- release either (a foreign holder, PUBLISH denied in the last ten minutes, no channel), the first in line looks every
-- half second and each behind it a little more seldom, since nobody tells it that it has become the first. Who would
-- have room, but for one that stands before it and needs more, looks every second: nobody tells it when that one dies.
-- And it has the first look: that may be nobody's, left behind by a process that lives, and nothing else calls it while
-- there is no room for it. Its process lets it leave (P5). All others look every 5 s, which is their heartbeat. `more`
-- is advance's: then this one goes on, now.
place = function(owner, process, told, max_ttl, more)
  -- PEXPIRE is the first write, so a full memory cannot stop a heartbeat (HSET is refused, but not behind a write).
  call('PEXPIRE', KEYS[3], 60000)
  call('PEXPIRE', KEYS[4], 60000)
  call('HSET', KEYS[4], process, now)
  sweep()
  local asks, is_known, may_say = redis.acl_check_cmd, true, true
  if asks then
    is_known, may_say = try(asks, is_sharded(process) and 'SPUBLISH' or 'PUBLISH', process, '')
  end
  if not is_known or not may_say then
    call('HSET', KEYS[4], 'deaf', now)
  end
  -- Who holds it may only renew for weeks: the stamp, and the mark of a line, must not be forgotten meanwhile. If they
  -- are (eviction), they are written anew: without the mark acquire does not ask the line.
  if not last or #last < 51 then
    mark_line(next_stamp('0'))
  elseif call('PTTL', KEYS[2]) < fence_ms then
    call('PEXPIRE', KEYS[2], string.format('%.0f', fence_ms))
  end

  local ticket = string.format('%016.0f', tonumber(call('ZSCORE', KEYS[3], owner)))
  local ahead = call('ZRANK', KEYS[3], owner)
  local value, pttl = shown(max_ttl)
  local look_ms = 5000
  local live, staying, first = live_ahead(ahead, pttl)
  local room_at = live < 8 and staying < 4 and room_at_us(pttl)
  if room_at then
    look_ms = math.min(look_ms, math.max(0, math.ceil((room_at - tonumber(now)) / 1000)) + 2 + 50 * staying)
  end
  local is_foreign = value ~= '' and sub(value, 1, 3) ~= 'v1|'
  local deaf = call('HGET', KEYS[4], 'deaf')
  local deaf_for = deaf and tonumber(now) - tonumber(deaf)
  local is_deaf = deaf_for and deaf_for >= 0 and deaf_for < deaf_us -- Not for as long as a clock was set back (H5).
  if is_idle() or is_foreign or told ~= 's' or is_deaf then
    look_ms = math.min(look_ms, 500 + 50 * ahead)
  elseif live > 0 and ahead < 16 and is_free() then
    local entry = entry_of(owner, call('HGET', KEYS[4], owner))
    if entry and has_room(entry) then
      look_ms = math.min(look_ms, live == 1 and 1000 or 5000)
      tell_to_look(first)
    end
  end
  if more then
    look_ms = 0
  end
  return {7, now, ticket, ahead, look_ms, value, pttl}
end
