-- Part of the body of run(), which prelude.lua begins: inspect, "i".
--
-- Reads value and TTL of the first lock that is there; of a shared one, that of
-- the holder with this number, if one has it.
--
-- ARGV  lock... number
-- HELD pttl value | SHARED pttl holders | F | Q
if kind == 'i' then
    for i = a, b - 1 do
        local pttl = redis.call('PTTL', ARGV[i])
        local reply = pttl ~= -2 and held(ARGV[i], pttl)
        if reply and reply[3] == '' and readers(ARGV[i]) == 0 then
            reply = nil
        end
        if reply and reply[1] == 'SHARED' and ARGV[b] ~= '0' then
            local holders = redis.call('ZRANGE', ARGV[i], now_ms, '+inf',
                'BYSCORE', 'WITHSCORES')
            for k = 1, #holders, 2 do
                if string.sub(holders[k], 1, 17) == ARGV[b] .. '~' then
                    return {'HELD', holders[k + 1] - now_ms,
                        string.sub(holders[k], 1, 256)}
                end
            end
        end
        if reply then
            return reply
        end
    end
    -- This means something only if the node has forgotten nothing.
    return is_admitted() and 'F' or 'Q'
end

