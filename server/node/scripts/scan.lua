-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: scan, "s".
--
-- Finds locks of one node: the names of its keys that begin with a prefix, of the
-- types that locks have, from a cursor of SCAN on. How much it examines is
-- bounded, so that it holds up nothing else: the reply may be empty before the
-- end.
--
-- ARGV  cursor count prefix
-- KEYS cursor names | N, if the node denies its user the command
--
-- names  each with its length in front: "3:a:b5:order"
if kind == 's' then
    local from = #state - #'redlockd:state' + 1
    local pattern = string.gsub(string.sub(state, 1, from - 1) .. ARGV[a + 2],
        '[%[%]*?\\]', '\\%0') .. '*'
    local cursor, count = ARGV[a], tonumber(ARGV[a + 1])
    local names, seen, bytes = {}, {}, 0

    local function is_other(key)
        local value = redis.pcall('GETRANGE', key, '0', '0')
        return type(value) == 'table' and
            string.find(value.err, '^WRONGTYPE') and
            type(redis.pcall('ZCOUNT', key, '0', '0')) ~= 'number'
    end

    for _ = 1, 200 do
        local reply = redis.pcall('SCAN', cursor, 'MATCH', pattern,
            'COUNT', count < 10 and ARGV[a + 1] or '10')
        if reply.err then
            return 'N'
        end
        cursor = reply[1]
        for _, key in ipairs(reply[2]) do
            local name = string.sub(key, from)
            -- SCAN may give one twice; no lock has a longer name
            if not seen[name] and #name <= 1020 and not is_other(key) then
                seen[name] = true
                bytes = bytes + #name
                names[#names + 1] = #name .. ':' .. name
            end
        end
        if cursor == '0' or #names >= count or bytes >= 16000 then
            break
        end
    end
    return {'KEYS', cursor, table.concat(names)}
end

