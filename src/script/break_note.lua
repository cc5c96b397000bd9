-- SPDX-License-Identifier: Apache-2.0
-- break_note: what a break leaves beside the lock (`-- include: break_note.lua`: break.lua and break_counted.lua). Uses
-- now, sub, token, by and why.
--
-- `v1|token|now_us|owner ids|by|why`, and the owner ids are those of this break and of the up to 15 before it, newest
-- first: several holders can be broken one after another, and each is told so, and gets no vote again.
local function break_note(owner, before)
  local earlier = before and string.match(before, '^v1|%d+|%d+|([%x,]+)|')
  local ids = earlier and owner .. ',' .. sub(earlier, 1, 494) or owner
  return 'v1|' .. token .. '|' .. now .. '|' .. ids .. '|' .. by .. '|' .. why
end
