-- SPDX-License-Identifier: Apache-2.0
-- counted_view: what those who wait, and people, are told of the holders (`-- include: kind_view.lua`, behind the kind;
-- the other is exclusive_view.lua).
local shown, room_at_us

-- The holder whose lease ends first. None may end later than in max_ttl, or in what it was granted, when that is more
-- (P13): the clock may have stepped back (H5). Some whose lease has ended may be left (counted.lua), and are nobody.
shown = function(max_ttl)
  local function at(ms)
    return string.format('%.0f', tonumber(now) + ms * 1000)
  end
  local late = call('ZRANGEBYSCORE', KEYS[1], '(' .. at(tonumber(max_ttl)), '+inf', 'WITHSCORES', 'LIMIT', 0, 64)
  for i = 1, #late, 2 do
    local most = at(math.max(tonumber(max_ttl), ttl_of(late[i])))
    if tonumber(late[i + 1]) > tonumber(most) then
      live(0)
      call('ZADD', KEYS[1], most, late[i])
    end
  end
  local first = call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if #first == 0 then
    return '', -2
  end
  local grant = string.match(call('HGET', KEYS[5], first[1]) or '', '^%d+|%a|.|(.+)$') or ''
  return sub(grant, 1, 1024), math.ceil((tonumber(first[2]) - tonumber(now)) / 1000)
end

-- Leases end in the order of the set, until `id`, who stands in line, fits. It looks at the first 64 of them, and for a
-- writer, who needs all of it, at the last. Where ended ones are left it is in the past.
room_at_us = function(_, id)
  local wanted = tonumber(string.match(call('HGET', KEYS[4], id) or '', '|%a(%d+)|[^|]*$') or 1)
  if wanted >= size then
    local ends = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
    return tonumber(ends[2])
  end
  local holders = call('ZRANGE', KEYS[1], 0, 63, 'WITHSCORES')
  local missing = used + wanted - size
  for i = 1, #holders, 2 do
    missing = missing - permits_of(holders[i])
    if missing <= 0 or i + 2 > #holders then
      return tonumber(holders[i + 1])
    end
  end
  return nil
end
