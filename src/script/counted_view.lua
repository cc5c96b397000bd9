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

-- The lease that ends first. It may not make room enough by itself; but others may be given back meanwhile, and nobody
-- tells who stands first in line that this one would be enough then.
room_at_us = function()
  return tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
end
