-- SPDX-License-Identifier: Apache-2.0
-- counted: several hold it together, as far as there is room. The other kind beside exclusive.lua, which says what a
-- kind is: semaphores, and locks shared by readers and writers, where a writer takes all the room there is.
--
--   KEYS[1] holder   sorted set: owner id, scored by the server's time in microseconds at which its lease ends
--   KEYS[2] fence    string `stamp|owner id|KIND`, KIND `sN` for a semaphore of N, `wN` for readers (1) and writers (N)
--   KEYS[5] holders  hash: owner id -> `permits|mode|-|v1|owner id|token|ttl_ms|granted_us|owner label`, with `b`
--                    for `-` when it is broken; used -> the sum of the permits; and kind -> the KIND, for when the
--                    fence is lost before them: nobody writes that while all they do is renew
--
-- Each holder has an expiry of its own, so that a dead one's place comes back while others renew theirs (B7). The keys
-- live as long as the longest of them.
local last, kind, used, size, is_known
local read, fence_mark, is_free, is_idle, has_room, is_too_large, put, held_token, claim, take_out
local is_left_over, read_only, mark_broken

local function is_owner_id(text)
  return #text == 32 and not string.find(text, '%X')
end

local function permits_of(owner)
  local entry = call('HGET', KEYS[5], owner)
  return entry and tonumber(string.match(entry, '^%d+')) or 0
end

local function ttl_of(owner)
  return tonumber(string.match(call('HGET', KEYS[5], owner) or '', '^%d+|%a|.|v1|%x+|%d+|(%d+)|') or 0)
end

-- ZREM is the first write, so a full memory cannot stop it.
local function drop(owner)
  local permits = permits_of(owner)
  if call('ZREM', KEYS[1], owner) == 1 and permits > 0 then
    used = used - permits
    call('HSET', KEYS[5], 'used', string.format('%.0f', used))
  end
  call('HDEL', KEYS[5], owner)
  if call('EXISTS', KEYS[1]) == 0 then
    call('DEL', KEYS[5])
    used = 0
  end
end

-- The sorted set and the hash live until the last lease ends by itself; behind a PERSIST the set says when that is. In
-- the last millisecond of it nothing is left, and PEXPIRE 0 would delete both, and what is written behind it would stay
-- without an expiry (C8). Up to Redis 7.0 so would PEXPIRE 1: it reads the clock twice, and not the script's.
local function lives(ms)
  local left = call('PTTL', KEYS[1])
  if left < 0 then
    local ends = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
    left = ends and math.ceil((tonumber(ends) - tonumber(now)) / 1000) or 0
  end
  return string.format('%.0f', math.max(left, ms, 10))
end

local function live(ms)
  ms = lives(ms)
  call('PEXPIRE', KEYS[1], ms)
  call('PEXPIRE', KEYS[5], ms)
end

-- Reads who holds it, and takes out those whose lease has ended. `asked`: the KIND that the caller takes the name for;
-- nil: whatever it is. Gives what it is instead, a type of Redis or a kind; nil when all is well. A size other than the
-- caller's is the caller's to judge. `gives_back`: what is held does not depend on fence, line and waiters, which may
-- be somebody else's keys; true behind the nil when one is.
read = function(asked, gives_back)
  used, size, kind, is_known = 0, 0, '', false
  local is_odd = false
  local kinds = {'zset', 'string', 'zset', 'hash', 'hash'}
  for i = 1, 5 do
    local found = call('TYPE', KEYS[i]).ok
    if found ~= 'none' and found ~= kinds[i] then
      if not gives_back or i == 1 or i == 5 then
        return i == 1 and found == 'string' and 'lock' or found
      end
      is_odd = true
    end
  end
  last = call('MGET', KEYS[2])[1] -- Nothing, of another type.
  -- A leave that found no fence could not know the kind, and left one of 50 bytes that names none: whoever asks next
  -- says it. The fence of an exclusive lock has 49 bytes, or its q.
  local kept = last and #last ~= 50 and sub(last, 51) or call('HGET', KEYS[5], 'kind')
  -- And a sorted set that nothing says to be ours may be somebody else's, whose members do not end with the time.
  local first = (not kept or kept == '') and call('ZRANGE', KEYS[1], 0, 0)[1]
  if first and not is_owner_id(first) then
    return 'sorted set'
  end
  kind = kept or asked or ''
  local mark = sub(kind, 1, 1)
  if kept and asked and mark ~= sub(asked, 1, 1) or mark ~= 's' and mark ~= 'w' and mark ~= '' then
    return mark == 's' and 'semaphore' or mark == 'w' and 'shared lock' or 'lock'
  end
  size, is_known = tonumber(sub(kind, 2)) or 0, true
  if call('EXISTS', KEYS[1]) == 0 then
    -- Not without need: it would be the first write, and what follows could not fail for memory any more.
    if call('EXISTS', KEYS[5]) == 1 then
      call('DEL', KEYS[5])
    end
    return nil, is_odd
  end
  -- Without the hash nobody knows who holds how much: full, until their leases have ended.
  used = tonumber(call('HGET', KEYS[5], 'used') or size)
  -- A machine with thousands of holders may have died. 4096 at most, so that nobody stops the server: who comes next
  -- goes on.
  for _ = 1, 16 do
    local ended = call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 256)
    for _, owner in ipairs(ended) do
      drop(owner)
    end
    if #ended < 256 then
      break
    end
  end
  return nil, is_odd
end

fence_mark = function()
  return '|' .. kind
end

is_free = function()
  return used < size
end
is_idle = function()
  return used == 0
end
has_room = function(entry)
  return used + entry.permits <= size
end
-- Since a resize. A name that was never told its size (`size` 0) is not free, so that nobody asks then.
is_too_large = function(entry)
  return entry.permits > size
end

put = function(entry, stamp, expires_us)
  -- Before the first write, because an ACL may deny what it asks (C8).
  local ms = lives(math.ceil((expires_us - tonumber(now)) / 1000))
  local done = pcall('ZADD', KEYS[1], string.format('%.0f', expires_us), entry.id)
  if type(done) == 'table' and done.err then
    return done
  end
  local at = entry.granted_us or now -- A vote's that is given again (ballot.lua).
  local grant = 'v1|' .. entry.id .. '|' .. stamp .. '|' .. entry.ttl .. '|' .. at .. '|' .. entry.label
  local text = string.format('%.0f', entry.permits) .. '|' .. entry.mode .. '|-|' .. grant
  done = pcall('HSET', KEYS[5], entry.id, text, 'used', string.format('%.0f', used + entry.permits), 'kind', kind)
  if type(done) == 'table' and done.err then
    call('ZREM', KEYS[1], entry.id) -- Denied by the ACL: without an expiry it would stay for ever (C8).
    return done
  end
  used = used + entry.permits
  done = pcall('PEXPIRE', KEYS[5], ms)
  if type(done) ~= 'table' then
    done = pcall('PEXPIRE', KEYS[1], ms)
  end
  if type(done) == 'table' then
    drop(entry.id) -- Denied, too.
    return done
  end
  return {}
end

-- Nobody holds what is none of ours.
held_token = function(owner)
  if not is_known or not call('ZSCORE', KEYS[1], owner) then
    return nil
  end
  return string.match(call('HGET', KEYS[5], owner) or '', '^%d+|%a|.|v1|%x+|(%d+)|')
end

-- It is in the set, and the hash that said what it has is lost: no hold, but it keeps others out until it ends.
is_left_over = function(owner)
  return is_known and call('ZSCORE', KEYS[1], owner)
end

-- PEXPIRE is the first write, so a full memory cannot stop it (ZADD is refused then, but not behind a write).
-- Of one that was broken meanwhile nothing but what is left: written all the same, or WAIT behind it would not wait for
-- the replicas to have the grant.
claim = function(owner)
  if string.find(call('HGET', KEYS[5], owner) or '', '^%d+|%a|b|') then
    live(0)
    return math.ceil((tonumber(call('ZSCORE', KEYS[1], owner)) - tonumber(now)) / 1000)
  end
  local ttl = ttl_of(owner)
  live(ttl)
  call('ZADD', KEYS[1], string.format('%.0f', tonumber(now) + ttl * 1000), owner)
  return ttl
end

take_out = drop

-- The room that a writer takes beyond a reader's. The expiries are touched first, so that memory does not matter.
read_only = function(owner)
  local entry = call('HGET', KEYS[5], owner)
  used = used - permits_of(owner) + 1
  live(0)
  call('HSET', KEYS[5], owner, (string.gsub(entry, '^%d+|%a|', '1|r|')), 'used', string.format('%.0f', used))
end

-- Gives whether it was already.
mark_broken = function(owner)
  local entry = call('HGET', KEYS[5], owner)
  if string.find(entry, '^%d+|%a|b|') then
    return true
  end
  live(0)
  call('HSET', KEYS[5], owner, (string.gsub(entry, '^(%d+|%a)|%-|', '%1|b|')))
  return false
end
