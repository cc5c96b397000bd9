-- SPDX-License-Identifier: Apache-2.0
-- exclusive: one holder at a time. One of the two kinds that a script with a line can be built for
-- (`-- include: kind.lua`; the other is counted.lua). A kind says who holds the lock, whether there is room for an
-- entry, and how one is put in; advance.lua and place.lua do the rest. Uses now, call, pcall, sub and
--
--   KEYS[1] holder   string `v1|owner id|token|ttl_ms|granted_us|owner label`
--   KEYS[2] fence    string `stamp|owner id`, with `|q` behind it while there may be a line
local last, value
local read, fence_mark, is_free, is_idle, has_room, is_too_large, put, held_token, is_left_over, claim, take_out

-- Reads who holds it. Gives the type of the first key that is not what it should be, or the kind that the name is used
-- as; nil when all is well.
read = function()
  local found = call('MGET', KEYS[1], KEYS[2])
  value, last = found[1], found[2]
  local mark = sub(last or '', 51, 51)
  if mark ~= '' and mark ~= 'q' then
    return mark == 's' and 'semaphore' or 'shared lock'
  end
  local kinds = {'string', 'string', 'zset', 'hash'}
  for i = 1, 4 do
    local kind = call('TYPE', KEYS[i]).ok
    if kind ~= 'none' and kind ~= kinds[i] then
      return kind
    end
  end
  return nil
end

-- The q says that there may be a line, so that who finds the lock free asks it (acquire.lua).
fence_mark = function(has_line)
  if has_line == nil then
    has_line = call('TYPE', KEYS[3]).ok == 'zset'
  end
  return has_line and '|q' or ''
end

-- Might somebody be let in; does nobody hold it; is there room for this one?
is_free = function()
  return not value
end
is_idle = is_free
has_room = is_free
is_too_large = function()
  return false
end

put = function(entry, stamp, expires_us)
  local grant = 'v1|' .. entry.id .. '|' .. stamp .. '|' .. entry.ttl .. '|' .. now .. '|' .. entry.label
  local done = pcall('SET', KEYS[1], grant, 'PXAT', string.format('%.0f', math.floor(expires_us / 1000)))
  if not done.err then
    value = grant
  end
  return done
end

-- The token of what this owner id holds; nil when it holds nothing.
held_token = function(owner)
  return value and sub(value, 1, 36) == 'v1|' .. owner .. '|' and sub(value, 37, 52) or nil
end

is_left_over = function()
  return false
end

-- PEXPIRE is the only write, so a full memory cannot stop it.
claim = function(owner)
  local ttl = string.match(value, '^%d+', 54)
  call('PEXPIRE', KEYS[1], ttl)
  return ttl
end

-- DEL is the first write, so a full memory cannot stop it.
take_out = function()
  call('DEL', KEYS[1])
  value = false
end
