-- SPDX-License-Identifier: Apache-2.0
-- go_on: lets the line move on behind those whom the script before could not see any more.
--
-- KEYS[1]  holder key
-- KEYS[2]  fence key
-- KEYS[3]  line key
-- KEYS[4]  waiters key
-- KEYS[5]  holders key (of a counted kind)
-- ARGV[1]  'q': quarantine, the line does not move (epoch.lua); left out: it does
--
-- Returns  now               nobody is left to be seen: somebody has it, or will take it, or nobody waits
--          {18, now}         there may be room for somebody who was not seen: go on
--
-- Sent by whoever was answered 18: it has freed the lock, and one script sees 256 entries (advance.lua). Whoever stands
-- there is told to look, too, but behind a crowd of the dead the script cannot know who lives; who has just been
-- answered does. It may be sent by anybody at any time: it does what a look does for others, and holds nothing itself.
-- One step, and the server's clock decides.
local call, pcall, sub = redis.call, redis.pcall, string.sub

local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. sub('00000' .. time[2], -6)

-- include: kind.lua
-- include: advance.lua

local wrong, is_odd = read(nil, true)
if is_free() and not wrong and not is_odd and not ARGV[1] then
  advance(nil)
end
return done()
