-- Sets one lock, or several: all or none.
--
-- KEYS  state lock...
-- ARGV  token ttl_ms number admit deadline_us window_us slot...
-- GRANTED now | HELD now pttl value | STALE now highest
-- QUARANTINED now | LATE now | SKEWED now

local number = tonumber(ARGV[3])

-- One read for the admission and the slots of all locks.
local state = redis.call('HMGET', KEYS[1], 'admit', unpack(ARGV, 7))

-- A node that lost its memory has lost the admission with it: first of all.
if state[1] ~= ARGV[4] then
    return {'QUARANTINED', now}
end

-- The command may have lain in a paused node's socket buffer for minutes,
-- while its sender gave up and can release nothing any more.
if now > tonumber(ARGV[5]) then
    return {'LATE', now}
end

-- A number far ahead of this clock would block the slot for honest numbers; a
-- number far behind it may be lower than one that this node has forgotten.
if math.abs(number - now) > tonumber(ARGV[6]) then
    return {'SKEWED', now}
end

-- The lock that stands in the way: held by any type of key, with or without
-- TTL, or else free but with a higher number accepted in its slot.
local function refuse(i)
    local pttl = redis.call('PTTL', KEYS[i])
    if pttl == -2 then
        return {'STALE', now, tonumber(state[i])}
    end
    return held(pttl, read(KEYS[i]))
end

-- state[i] is the slot of KEYS[i], as admit stands where the state key does.
for i = 2, #KEYS do
    if state[i] and tonumber(state[i]) >= number then
        return refuse(i)
    end
end

for i = 2, #KEYS do
    if not redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2]) then
        for j = 2, i - 1 do
            redis.call('DEL', KEYS[j])
        end
        return refuse(i)
    end
end

-- Only now: a number that granted nothing must not make others stale.
for i = 2, #KEYS do
    redis.call('HSET', KEYS[1], ARGV[i + 5], ARGV[3])
end
return {'GRANTED', now}
