-- SPDX-License-Identifier: Apache-2.0
-- place: what wait and look share (`-- include: place.lua`, behind advance.lua): the claim, the clamp, and what a
-- waiter is told about its place in line.
local wrong_kind, claim, clamp, move_on, place

-- The type of the first key that is not what it should be; nil when all are.
wrong_kind = function()
  local kinds = {'string', 'string', 'zset', 'hash'}
  for i = 1, 4 do
    local kind = call('TYPE', KEYS[i]).ok
    if kind ~= 'none' and kind ~= kinds[i] then
      return kind
    end
  end
  return nil
end

-- It is ours already: a grant of the line that we take now, or an earlier copy of this request. It lives its whole ttl
-- from now on. PEXPIRE is the only write, so a full memory cannot stop it.
claim = function(value)
  local ttl = string.match(value, '^%d+', 54)
  call('PEXPIRE', KEYS[1], ttl)
  return {1, now, sub(value, 37, 52), tonumber(ttl)}
end

-- A clock that stepped back, or somebody's PERSIST, must not keep a lock for hours (H5, C8). Only to max_ttl: the
-- holder may have renewed to any ttl up to that (P13). A foreign value is somebody else's lock: left alone.
clamp = function(value, max_ttl)
  local pttl = call('PTTL', KEYS[1])
  if sub(value, 1, 3) == 'v1|' and (pttl == -1 or pttl > tonumber(max_ttl)) then
    call('PEXPIRE', KEYS[1], max_ttl)
  end
end

-- The lock is free: lets the line move. Gives the holder's value (nil: still free), the fence, and whether it is kept
-- for somebody in line who cannot be told.
move_on = function(last, me)
  local value, fence = advance(last, me)
  if value == 'reserved' then
    return nil, last, true
  end
  return value, fence or last, false
end

-- Touches everything of the line and answers {7, now, ticket, ahead, look_ms, value, pttl}. When to look again is the
-- server's to say, because it knows which expiry matters (P2): the first four look at the holder's, one after another,
-- since nobody tells them of it. Where nobody can be told of a release either (a foreign holder, PUBLISH denied, no
-- channel), the first in line looks every half second and each behind it a little more seldom, since nobody tells it
-- that it has become the first. All others look every 5 s, which is their heartbeat.
place = function(value, owner, process, told)
  call('HSET', KEYS[4], process, now)
  if redis.acl_check_cmd and not redis.acl_check_cmd('PUBLISH', process, '') then
    call('HSET', KEYS[4], 'deaf', now)
  end
  call('PEXPIRE', KEYS[3], 60000)
  call('PEXPIRE', KEYS[4], 60000)

  local ticket = string.format('%016.0f', tonumber(call('ZSCORE', KEYS[3], owner)))
  local ahead = call('ZRANK', KEYS[3], owner)
  local pttl = value and call('PTTL', KEYS[1]) or -2
  local look_ms = 5000
  if ahead < 4 and pttl >= 0 then
    look_ms = math.min(look_ms, pttl + 2 + 50 * ahead)
  end
  local is_foreign = value and sub(value, 1, 3) ~= 'v1|'
  if not value or is_foreign or told ~= 's' or call('HEXISTS', KEYS[4], 'deaf') == 1 then
    look_ms = math.min(look_ms, 500 + 50 * ahead)
  end
  return {7, now, ticket, ahead, look_ms, value and sub(value, 1, 1024) or '', pttl}
end
