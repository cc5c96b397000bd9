-- SPDX-License-Identifier: Apache-2.0
-- advance: lets the line move. Not a script of its own: every script that can free a lock or find it free has it
-- (`-- include: advance.lua`), behind its kind (exclusive.lua or counted.lua), with `now`, `call`, `pcall`, `sub` and
-- KEYS[1] holder, [2] fence, [3] line, [4] waiters.
--
--   line     sorted set: owner id, scored by its ticket, a stamp
--   waiters  hash: owner id -> `v1|process|ear|ttl_ms|window_ms|wait_until_us|min_fence|joined_us|mode|label`
--                  process  -> the server's time of its last look: its heartbeat
--                  deaf     -> when a message was refused: nobody here can be told anything
--                  swept    -> when processes that do not look any more were last taken out (place.lua)
--                  standby  -> `now_us|until_us|process|owner id|at_us|owner id|at_us|owner id`: of the last grant,
--                              until when it is to be claimed and by which process, who was told to look when, and
--                              whose it was
--
-- A process is named by its channel; one that ends with `{number}` is sharded, at a node of a cluster
-- (docs/decisions/0026-sharded-channels.md). The ear is `s`: it has subscribed to it and the server said so (P1); or
-- `-` and the server's time of this waiter's own last look. A member of one key without its entry in the other is dead.
-- Both live a minute after the last touch. The mode is `x` and perhaps a block of tokens (acquire.lua), or `r`, `w` or
-- `p` and the permits that it takes (counted.lua).
--
-- Whoever is granted is taken out of the line. The value is the waiter's own, with its whole ttl; only its expiry is
-- the claim window, so a claim is compare and PEXPIRE. The message is a hint and nothing is decided by it.
local is_sharded, tell, next_stamp, write_fence, mark_spent, grant, has_missed, call_two, go_on_at, advance, done

local silent_us = 6000000 -- One look missed: others go first (P3).
local dead_us = 16500000  -- Three looks missed: out of the line (P1).
local most_grants = 16
local most_seen = 256
local most_behind = 32
local most_gone = 8
local most_passed = 64
local is_unseen = false -- There may be room for somebody whom advance did not see.

is_sharded = function(channel)
  return sub(channel, -1) == '}'
end

-- False when nobody may be told anything here, by anybody with the caller's permissions.
tell = function(channel, message)
  local told = is_sharded(channel) and pcall('SPUBLISH', channel, message) or pcall('PUBLISH', channel, message)
  return type(told) == 'number'
end

-- max(last + 1, now, floor + 1), 16 digits.
next_stamp = function(floor)
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

-- `has_line`: whether somebody is in line; nil when the caller does not know.
write_fence = function(stamp, owner, has_line)
  last = stamp .. '|' .. owner .. fence_mark(has_line)
  call('SET', KEYS[2], last, 'PX', fence_lives(stamp))
end

-- The last stamp; `least` where there is none that is one, or a smaller one.
local function last_stamp(least)
  local stamp = last and sub(last, 1, 16) or ''
  return (#stamp ~= 16 or string.find(stamp, '%D') or stamp < least) and least or stamp
end

-- Puts the owner id beside the last stamp, or beside `least` when there is none, or a smaller one that was written for
-- a fence that is lost (P9, C2). NX without a fence: a key of another type looks absent, and is not ours to overwrite.
-- It may fail: full memory.
mark_spent = function(owner, least)
  local stamp = last_stamp(least)
  local fence = stamp .. '|' .. owner .. fence_mark()
  local lives = fence_lives(stamp)
  local done = last and pcall('SET', KEYS[2], fence, 'PX', lives) or pcall('SET', KEYS[2], fence, 'NX', 'PX', lives)
  if done and not done.err then
    last = fence
  end
end

local function strike(id)
  call('ZREM', KEYS[3], id)
  call('HDEL', KEYS[4], id)
end

-- Makes it a holder and takes it out of the line. The token; nil and the server's error when memory is full.
-- `is_all`: nobody else is in line, for all that the caller has seen.
grant = function(entry, lives_ms, is_all)
  local stamp = next_stamp(entry.min_fence)
  local done = put(entry, stamp, tonumber(now) + tonumber(lives_ms) * 1000)
  if done.err then
    return nil, done
  end
  if is_all then
    call('DEL', KEYS[3], KEYS[4])
  else
    strike(entry.id)
    if call('EXISTS', KEYS[3]) == 0 then
      call('DEL', KEYS[4])
      is_all = true
    end
  end
  -- The last stamp is the end of the block: whoever comes next is above all of it (P14).
  local has_block = entry.mode == 'x' and entry.permits > 0
  write_fence(has_block and string.format('%.0f', tonumber(stamp) + entry.permits) or stamp, entry.id, not is_all)
  return stamp
end

-- `text`: what the waiters key has of it. Nil for an entry that is dead: half lost, or its own wait is over, at `at` if
-- that is given.
local function entry_of(id, text, at)
  local process, told, looked, ttl, window, wait_until, min_fence, _, mode, permits, label = string.match(text or '',
    '^v1|([^|]+)|([s-])(%d*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%a)(%d*)|([^|]*)$')
  if not process or wait_until ~= '0' and (at or now) > wait_until then
    return nil
  end
  return {id = id, process = process, told = told, looked = looked, ttl = ttl, window = window, min_fence = min_fence,
    mode = mode, permits = tonumber(permits) or 0, label = label}
end

-- How long its process has not looked; of one who cannot be told, how long nobody has looked for it: its process may
-- know nothing of it any more and look for others, and nothing would ever call it (P5).
local function silence_of(entry)
  local looked = entry.told ~= 's' and entry.looked or call('HGET', KEYS[4], entry.process)
  entry.looked = looked
  local silence = looked and tonumber(now) - tonumber(looked) or dead_us + 1
  -- It looked in the future: the clock went back, and nobody knows how long it has been silent (H5). Whoever lives
  -- looks soon; until then those who have looked since go first, or a dead one would be first for all of the step.
  return silence < 0 and silent_us + 1 or silence
end

-- The exact channel: PUBLISH's own count includes whoever subscribed to a pattern (P1).
local function listens(entry)
  local process = entry.process
  local listening = is_sharded(process) and pcall('PUBSUB', 'SHARDNUMSUB', process) or
    pcall('PUBSUB', 'NUMSUB', process)
  return listening.err or tonumber(listening[2]) ~= 0
end

-- Grants it for a claim window and tells it so; false when it could not be told, or memory is full.
local function offer(entry, is_all)
  local until_ms = math.floor(tonumber(now) / 1000) + tonumber(entry.window)
  if not tell(entry.process, 'v1|grant|' .. entry.id .. '|' .. now .. '|' .. string.format('%.0f', until_ms)) then
    pcall('HSET', KEYS[4], 'deaf', now)
    return false
  end
  return grant(entry, entry.window, is_all) ~= nil
end

-- Has two who stand at `rank` or a little behind look at those times, without being asked again. Of two processes,
-- since all who wait in one are gone together; of one, where there is no other. Nobody of `without`, nor who has given
-- up by then, nor who does not listen. A crowd of one process is not searched for ever, nor one of those who give up.
-- `|owner id|at_us` of each.
call_two = function(rank, without, from_us, step_us)
  local two, told, gone, spare = {}, '', 0, nil
  local function at_us(nth)
    return string.format('%.0f', from_us + step_us * nth)
  end
  for _, id in ipairs(call('ZRANGE', KEYS[3], rank, rank + most_behind - 1)) do
    local text = call('HGET', KEYS[4], id)
    local process = string.match(text or '', '^v1|([^|]+)|s|')
    local is_second = two[1] and two[1].process == process
    if process and process ~= without and not (is_second and spare) then
      local entry = entry_of(id, text, at_us(#two + 1))
      if not entry then
        gone = gone + 1
      elseif is_second then
        spare = entry
      elseif silence_of(entry) <= dead_us and listens(entry) then
        two[#two + 1] = entry
      end
      if #two == 2 or gone == most_gone then
        break
      end
    end
  end
  two[2] = two[2] or spare
  for nth, entry in ipairs(two) do
    local at = '|' .. at_us(nth)
    if tell(entry.process, 'v1|look|' .. entry.id .. '|' .. now .. at) then
      told = told .. '|' .. entry.id .. at
    end
  end
  return told
end

-- Should it not come, nobody else would notice (P3), and nobody else of its process would come either. If it is not the
-- only one that was granted something, any of these may be dead: then two processes are enough.
local function stand_by(offered, without, rank)
  local until_us = tonumber(now) + tonumber(offered.window) * 1000
  local told = call_two(rank, without, until_us, 200000)
  if told ~= '' then
    local claim = string.format('|%.0f|', until_us) .. offered.process
    call('HSET', KEYS[4], 'standby', now .. claim .. told .. '|' .. offered.id)
  end
end

local function tell_to_look(entry)
  return tell(entry.process, 'v1|look|' .. entry.id .. '|' .. now .. '|' .. now)
end

-- Whoever stands there looks now, and goes on from there. If that one is not there, one of the last in line is the best
-- guess: who came last is the least likely to have died since.
go_on_at = function(rank)
  for _, places in ipairs({{rank, rank}, {-8, -1}}) do
    for _, id in ipairs(call('ZRANGE', KEYS[3], places[1], places[2])) do
      local entry = entry_of(id, call('HGET', KEYS[4], id))
      if entry and entry.told == 's' and listens(entry) and tell_to_look(entry) then
        return
      end
    end
  end
end

-- advance(me): grants to those first in line who are there to take it, while there is room: to `me` (the caller's owner
-- id) with its whole ttl, to anybody else for a claim window. Gives
--   token  of `me`, if it was granted
--   more   there may be room for somebody who has not been seen: who looks now goes on
--   kept   there may be room, but it belongs to somebody live in line, or may: who cannot be told, and takes it with
--          its next look; who needs more room than there is now; or who has not been seen (C7)
-- Who needs more than there can ever be is taken out of the line, and looks.
-- It makes 16 grants and sees 256 entries at most; then it tells the next one to look, and that one goes on; and so
-- does whoever asked (done()), because the one that is told may be dead. Whoever is not there is passed over. Behind 64
-- of those it is taken out, or each look would see the same ones and nobody behind them; it comes back to its place
-- when it looks (P7).
advance = function(me)
  local rank, seen, grants, asked, is_end = 0, 0, 0, 4, false
  local token, first_silent, offered, head
  -- Behind a release that is done already nothing in here may fail, also if a key has another type. Who asks for itself
  -- is told: else it would wait beside a free lock, and each newcomer would see nobody in line.
  local ask = me and call or pcall

  local function pass(entry)
    if rank == most_passed then
      return strike(entry.id)
    end
    rank = rank + 1
    return entry
  end

  while seen < most_seen and grants < most_grants and not head do
    local ids = ask('ZRANGE', KEYS[3], rank, rank + asked - 1)
    if ids.err then
      return nil, false
    end
    is_end = #ids < asked
    if #ids == 0 then
      break
    end
    local first = ask('HGET', KEYS[4], ids[1])
    if type(first) == 'table' then
      return nil, false
    end
    seen = seen + #ids
    for i = 1, #ids do
      local entry = entry_of(ids[i], i == 1 and first or call('HGET', KEYS[4], ids[i]))
      local is_all = is_end and i == #ids and rank == 0
      local silence = entry and (entry.id == me and 0 or silence_of(entry)) or dead_us + 1
      if silence > dead_us then
        strike(ids[i])
      elseif not is_free() then
        head = entry
      elseif is_too_large(entry) then
        -- It may be nobody's: left by whoever asked, and brought back by a server that has forgotten that (P5). Its
        -- process lives, nobody looks for it, and who never fits is never granted anything, and so never called.
        strike(entry.id)
        if entry.told == 's' then
          tell_to_look(entry)
        end
      elseif entry.id ~= me and (silence > silent_us or me and has_missed(entry)) then
        local passed = pass(entry)
        first_silent = first_silent or passed
      elseif entry.id ~= me and entry.told == 's' and not listens(entry) then
        pass(entry)
      elseif not has_room(entry) then
        head = entry
      elseif entry.id == me then
        token = grant(entry, entry.ttl, is_all)
        grants = grants + 1
        head = not token and entry or nil
      elseif entry.told ~= 's' or not offer(entry, is_all) then
        head = entry
      else
        offered = entry
        grants = grants + 1
      end
      if head or grants == most_grants then
        break
      end
    end
    if is_end then
      break
    end
    asked = 32
  end

  local more = not head and is_free() and (grants == most_grants or not is_end)
  is_unseen = more
  if grants == 0 and not head and not more and first_silent and first_silent.told == 's' and
    has_room(first_silent) and listens(first_silent) then
    if offer(first_silent) then
      offered = first_silent
    else
      head = first_silent
    end
  end
  if offered then
    stand_by(offered, grants < 2 and offered.process, rank)
  end
  if more then
    go_on_at(rank)
  end
  if seen == 0 then
    if call('TYPE', KEYS[4]).ok == 'hash' then
      call('DEL', KEYS[4])
    end
    if last and sub(last, 50) == '|q' then
      write_fence(last_stamp('0000000000000000'), sub(last, 18, 49), false)
    end
  end
  return token, more, head ~= nil or grants == most_grants or more
end

-- What a script answers that has done its work: that alone, or that whoever asked shall let the line go on (go_on.lua).
done = function()
  return is_unseen and {18, now} or now
end
