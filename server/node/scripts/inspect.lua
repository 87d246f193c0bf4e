-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: inspect, "i", and tokens,
-- "t".
--
-- Inspect reads value and TTL of the first lock that is there.
--
-- ARGV  lock...
-- HELD pttl value | SHARED pttl holders | F | Q
if kind == 'i' then
    for i = a, b - 1 do
        local pttl = redis.call('PTTL', ARGV[i])
        local reply = pttl ~= -2 and held(ARGV[i], pttl)
        if reply and reply[3] == '' and readers(ARGV[i]) == 0 then
            reply = nil
        end
        if reply then
            return reply
        end
    end
    -- This means something only if the node has lost nothing.
    return is_admitted() and 'F' or 'Q'
end

-- Tokens reads the tokens of all who hold one of the locks, in either form: all
-- of them, or those with one number. It reads 100 at most, those that end first,
-- so that it holds up nothing else.
--
-- ARGV  lock... number; 0: all
-- TOKENS left tokens | F | Q
--
-- left    how many holders were not read
-- tokens  each with its length in front; none, if only others hold the locks
if kind == 't' then
    local MOST = 100
    local wanted = ARGV[b] ~= '0' and string.format('%016d', ARGV[b])
    local tokens, left, is_there, refused = {}, 0, false, nil
    for i = a, b - 1 do
        local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        local found, holders = {value}, nil
        if type(value) == 'table' then
            if not string.find(value.err, '^WRONGTYPE') then
                return value
            end
            holders, refused = readers(ARGV[i])
            if refused and not string.find(refused.err, '^WRONGTYPE') then
                return refused
            end
            -- one more may be the intent
            found = holders and redis.call('ZRANGE', ARGV[i], now_ms, '+inf',
                'BYSCORE', 'LIMIT', '0', wanted and '-1' or MOST + 1) or {}
        end
        is_there = is_there or holders ~= 0 and
            redis.call('PTTL', ARGV[i]) ~= -2
        local told = 0
        for _, token in ipairs(found) do
            local form = string.byte(token, 17)
            if #tokens < MOST and (form == 46 or form == 126) and
                #token <= 145 and token ~= INTENT and
                (not wanted or string.sub(token, 1, 16) == wanted) then
                tokens[#tokens + 1] = #token .. ':' .. token
                told = told + 1
            end
        end
        left = left + math.max(not wanted and holders or 0, told) - told
    end
    if is_there then
        return {'TOKENS', left, table.concat(tokens)}
    end
    -- This means something only if the node has lost nothing.
    return is_admitted() and 'F' or 'Q'
end

