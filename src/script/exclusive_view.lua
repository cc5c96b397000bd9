-- SPDX-License-Identifier: Apache-2.0
-- exclusive_view: what those who wait, and people, are told of the holder (`-- include: kind_view.lua`, behind the
-- kind; the other is counted_view.lua). Apart from exclusive.lua, because who releases needs none of it.
local shown, room_at_us

-- What people are shown of the holders, and the remaining ms; '' and -2 while nobody holds it. A clock that stepped
-- back, or somebody's PERSIST, must not keep a lock for hours (H5, C8). To max_ttl, and not to less than the holder was
-- granted: its max_ttl may be another (P13). A foreign value is somebody else's lock: left alone.
shown = function(max_ttl)
  if not value then
    return '', -2
  end
  local pttl = call('PTTL', KEYS[1])
  local ours = sub(value, 1, 3) == 'v1|'
  local most = math.max(tonumber(max_ttl), ours and tonumber(string.match(value, '^%d+', 54)) or 0)
  if ours and (pttl == -1 or pttl > most) then
    pttl = most
    call('PEXPIRE', KEYS[1], pttl)
  end
  return sub(value, 1, 1024), pttl
end

-- When there will be room if nobody does anything; nil when nothing says so.
room_at_us = function(pttl)
  return pttl >= 0 and tonumber(now) + pttl * 1000 or nil
end
