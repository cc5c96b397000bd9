-- SPDX-License-Identifier: Apache-2.0
-- advance: lets the line move. Not a script of its own: every script that can free a lock or find it free has it
-- (`-- include: advance.lua`), with `now`, `call`, `pcall`, `sub` and KEYS[1] holder, [2] fence, [3] line, [4] waiters.
--
--   line     sorted set: owner id, scored by its ticket, a stamp
--   waiters  hash: owner id -> `v1|process|s or -|ttl_ms|window_ms|wait_until_us|min_fence|joined_us|mode|label`
--                  process  -> the server's time of its last look: its heartbeat
--                  deaf     -> when a PUBLISH was refused: nobody here can be told anything
--                  standby  -> `now_us|owner id|at_us|owner id|at_us`: who was told to look when, at the last grant
--
-- A process is named by its channel; `s`: it has subscribed to it and the server said so (P1). A member of one key
-- without its entry in the other is dead. Both live a minute after the last touch.
--
-- Whoever is granted is taken out of the line. The value is the waiter's own, with its whole ttl; only the key's expiry
-- is the claim window, so a claim is compare and PEXPIRE. The message is a hint and nothing is decided by it.
local tell, next_stamp, write_fence, mark_spent, grant, advance

local silent_us = 6000000 -- One look missed: others go first (P3).
local dead_us = 16500000  -- Three looks missed: out of the line (P1).

-- False when nobody may be told anything here, by anybody with the caller's permissions.
tell = function(channel, message)
  local told = pcall('PUBLISH', channel, message)
  return type(told) == 'number'
end

-- max(last + 1, now, floor + 1), 16 digits.
next_stamp = function(last, floor)
  local stamp = now
  local before = last and sub(last, 1, 16) or ''
  if #before == 16 and before >= stamp and before < '9007199254740991' and not string.find(before, '%D') then
    stamp = string.format('%.0f', tonumber(before) + 1)
  end
  if floor ~= '0' and tonumber(floor) >= tonumber(stamp) then
    stamp = string.format('%.0f', tonumber(floor) + 1)
  end
  return stamp
end

-- A week, and as long as the stamp is ahead of the clock, so that it is not forgotten before the clock has passed it
-- (P16).
local function fence_lives(stamp)
  local keep = 604800000
  if stamp > now then
    keep = keep + math.ceil((tonumber(stamp) - tonumber(now)) / 1000)
  end
  return string.format('%.0f', keep)
end

-- `stamp|owner id|q`: the q says that there may be a line, so that who finds the lock free asks it (acquire.lua).
write_fence = function(stamp, owner, has_line)
  local fence = stamp .. '|' .. owner .. (has_line and '|q' or '')
  call('SET', KEYS[2], fence, 'PX', fence_lives(stamp))
  return fence
end

-- Puts the owner id beside the last stamp, or beside `least` when there is none (P9). Gives the fence as it then is.
-- NX without a fence: a key of another type looks absent, and is not ours to overwrite. It may fail: full memory.
mark_spent = function(last, owner, least, has_line)
  local stamp = last and sub(last, 1, 16) or ''
  if #stamp ~= 16 or string.find(stamp, '%D') then
    stamp = least
  end
  local fence = stamp .. '|' .. owner .. (has_line and '|q' or '')
  local done
  if last then
    done = pcall('SET', KEYS[2], fence, 'PX', fence_lives(stamp))
  else
    done = pcall('SET', KEYS[2], fence, 'NX', 'PX', fence_lives(stamp))
  end
  return done and not done.err and fence or last
end

-- The holder's value and the fence; nil and the server's error when memory is full.
grant = function(owner, ttl, min_fence, label, last, key_expires_ms)
  local stamp = next_stamp(last, min_fence)
  local value = 'v1|' .. owner .. '|' .. stamp .. '|' .. ttl .. '|' .. now .. '|' .. label
  local done = pcall('SET', KEYS[1], value, 'PXAT', string.format('%.0f', key_expires_ms))
  if done.err then
    return nil, done
  end
  call('ZREM', KEYS[3], owner)
  call('HDEL', KEYS[4], owner)
  local has_line = call('EXISTS', KEYS[3]) == 1
  if not has_line then
    call('DEL', KEYS[4])
  end
  return value, write_fence(stamp, owner, has_line)
end

-- advance(last, me): the lock is free. Grants it to the first in line who is there to take it: to `me` (the caller's
-- owner id) with its whole ttl, to anybody else for a claim window. Gives
--   value, last     granted: the holder's value, and the fence
--   'reserved'      free, but somebody live is in line who cannot be told: it takes it with its next look
--   nil             free, and nobody in line can be granted now
-- It looks at 256 entries at most; then it tells the next one to look, and that one goes on.
advance = function(last, me)
  -- It runs behind a release that is done already: nothing in here may fail.
  local kind = call('TYPE', KEYS[4]).ok
  if kind ~= 'hash' and kind ~= 'none' then
    return nil
  end
  local offset, seen_in_all, batch = 0, 0, 4
  local first_silent, chosen, chosen_entry
  local behind = {}
  local now_us = tonumber(now)
  -- A look finds the lock free behind a grant that lapsed. Whoever was told to stand by for that and did not look is
  -- silent too, and need not cost a window of its own (P3). A tenth of a second is for the network.
  local standby = me and call('HGET', KEYS[4], 'standby') or ''
  local told_at = sub(standby, 1, 16)

  while seen_in_all < 256 and not chosen do
    local ids = call('ZRANGE', KEYS[3], offset, offset + batch - 1)
    batch = 32
    if #ids == 0 then
      break
    end
    local dead = 0
    for i = 1, #ids do
      if #behind == 2 then
        break
      end
      local id, entry = ids[i], nil
      local text = call('HGET', KEYS[4], id)
      if text then
        local process, told, ttl, window, wait_until, min_fence, joined, mode, label =
          string.match(text, '^v1|([^|]+)|([s-])|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%a)|([^|]*)$')
        if process and (wait_until == '0' or now <= wait_until) then
          entry = {id = id, process = process, told = told, ttl = ttl, window = window, min_fence = min_fence,
            label = label}
        end
      end
      local silence = dead_us + 1
      if entry then
        local looked = id == me and now or call('HGET', KEYS[4], entry.process)
        silence = looked and now_us - tonumber(looked) or silence
        local due = string.match(standby, id .. '|(%d+)')
        if due and id ~= me and silence <= dead_us and looked < told_at and now_us > tonumber(due) + 100000 then
          silence = silent_us + 1
        end
      end
      if silence > dead_us then
        call('ZREM', KEYS[3], id)
        call('HDEL', KEYS[4], id)
        dead = dead + 1
      elseif chosen then
        if #behind < 2 and entry.told == 's' and entry.process ~= chosen_entry.process then
          behind[#behind + 1] = entry
        end
      elseif id == me then
        chosen, chosen_entry = id, entry
      elseif silence > silent_us then
        first_silent = first_silent or entry
      elseif entry.told ~= 's' then
        return 'reserved'
      else
        -- The exact channel: PUBLISH's own count includes whoever subscribed to a pattern (P1).
        local listening = pcall('PUBSUB', 'NUMSUB', entry.process)
        if listening.err or tonumber(listening[2]) ~= 0 then
          chosen, chosen_entry = id, entry
        end
      end
    end
    offset = offset + #ids - dead
    seen_in_all = seen_in_all + #ids
  end

  if not chosen then
    if first_silent then
      local listening = pcall('PUBSUB', 'NUMSUB', first_silent.process)
      if first_silent.told == 's' and (listening.err or tonumber(listening[2]) ~= 0) then
        chosen, chosen_entry = first_silent.id, first_silent
      end
    elseif seen_in_all >= 256 then
      local next_one = call('ZRANGE', KEYS[3], offset, offset)[1]
      local entry = next_one and call('HGET', KEYS[4], next_one)
      local process = entry and string.match(entry, '^v1|([^|]+)|s|')
      if process then
        tell(process, 'v1|look|' .. next_one .. '|' .. now .. '|' .. now)
      end
    end
  end
  if not chosen then
    if seen_in_all == 0 then
      call('DEL', KEYS[4])
      if last and #last > 49 then
        write_fence(sub(last, 1, 16), sub(last, 18, 49), false)
      end
    end
    return nil
  end

  local e = chosen_entry
  local now_ms = math.floor(now_us / 1000)
  if chosen == me then
    return grant(me, e.ttl, e.min_fence, e.label, last, now_ms + tonumber(e.ttl))
  end
  local until_ms = now_ms + tonumber(e.window)
  if not tell(e.process, 'v1|grant|' .. chosen .. '|' .. now .. '|' .. string.format('%.0f', until_ms)) then
    pcall('HSET', KEYS[4], 'deaf', now)
    return 'reserved'
  end
  local value, fence = grant(chosen, e.ttl, e.min_fence, e.label, last, until_ms)
  if not value then
    return 'reserved'
  end
  -- Should it not come, these look without being asked again: nobody else would notice (P3).
  standby = now
  for k = 1, #behind do
    local at = string.format('%.0f', now_us + tonumber(e.window) * 1000 + 200000 * k)
    tell(behind[k].process, 'v1|look|' .. behind[k].id .. '|' .. now .. '|' .. at)
    standby = standby .. '|' .. behind[k].id .. '|' .. at
  end
  if #behind > 0 then
    call('HSET', KEYS[4], 'standby', standby)
  end
  return value, fence
end
