-- Part of the body of run(), which prelude.lua begins: inspect, "i".
--
-- Reads value and TTL of the first lock that is there.
--
-- ARGV  lock...
-- HELD pttl value | F | Q
if kind == 'i' then
    for i = a, b - 1 do
        local pttl = redis.call('PTTL', ARGV[i])
        if pttl ~= -2 then
            return held(ARGV[i], pttl)
        end
    end
    -- This means something only if the node has forgotten nothing.
    return is_admitted() and 'F' or 'Q'
end

