-- SPDX-License-Identifier: Apache-2.0
-- ballot: what a vote checks and how it finds its token, whatever it is a vote for (`-- include: ballot.lua`: vote.lua
-- and vote_counted.lua). Uses now, sub, and ARGV[1] to ARGV[8] as vote.lua has them.
local owner, ttl, not_after, max_ttl, label = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local min_fence, proposal, record = ARGV[6], ARGV[7], ARGV[8]
if #owner ~= 32 then
  return {10, now, 'owner id'}
end
local ttl_ms, most_ms = tonumber(ttl), tonumber(max_ttl)
if not ttl_ms or not most_ms or ttl_ms < 1 or ttl_ms > most_ms or ttl_ms % 1 ~= 0 then
  return {10, now, 'ttl'}
end
if #label > 768 then
  return {10, now, 'owner label'}
end
if #min_fence > 16 or string.find(min_fence, '%D') or #min_fence == 0 then
  return {10, now, 'min_fence'}
end
if #proposal ~= 16 or string.find(proposal, '%D') then
  return {10, now, 'proposal'}
end
local generation = string.match(record, '^v1|(%d%d?%d?%d?%d?%d?%d?%d?%d?)|open|.')
if not generation or #record > 4096 then
  return {10, now, 'quorum record'}
end
if not_after ~= '0' then
  if #not_after ~= 16 then
    return {10, now, 'not_after'}
  end
  if now > not_after then
    return {3, now}
  end
end

-- Is this server another list's, or nobody's yet? Only a first generation begins with a vote (vote.lua).
local function is_of_another_quorum(kept)
  return kept ~= record and (kept or generation ~= '1')
end

-- So long does the record live behind its last vote.
local function record_ms()
  return generation == '1' and '604800000' or '34560000000'
end

local function is_too_far()
  local horizon = string.format('%.0f', tonumber(now) + 31536000000000)
  return proposal > horizon or tonumber(min_fence) > tonumber(horizon)
end

-- The proposal, or what this server needs: max(last + 1, now, min_fence + 1). Never tostring(): it would turn the sum
-- into 1.7e+15. To who has lost this vote (`is_again`) the proposal is its lease's token: that is no new grant, so it
-- gets no new token because the clock is past that, or because it is the last stamp; but it does for a larger one.
local function next_token(before, is_again)
  local stamp = now
  before = before and string.match(before, '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)|')
  if is_again and (not before or before <= proposal) and tonumber(min_fence) < tonumber(proposal) then
    return proposal
  end
  if before and before >= stamp and before < '9007199254740991' then
    stamp = string.format('%.0f', tonumber(before) + 1)
  end
  if tonumber(min_fence) >= tonumber(stamp) then
    stamp = string.format('%.0f', tonumber(min_fence) + 1)
  end
  if proposal > stamp then
    stamp = proposal
  end
  return stamp
end

-- When what gets this token was granted: a stamp behind the clock is that of a vote that was lost.
local function granted_us(stamp)
  return stamp < now and stamp or now
end

-- A week, and as long as the stamp is ahead of the clock, so that it is not forgotten before the clock is past it.
local function fence_ms(stamp)
  return string.format('%.0f', 604800000 + math.max(0, math.ceil((tonumber(stamp) - tonumber(now)) / 1000)))
end
