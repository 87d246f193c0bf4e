-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: slots, "f".
--
-- Tells which slots of a pool are free. The slots are locks: the pool's name, as
-- announce() has it, and a number from 0 on.
--
-- ARGV  pool count key_hash
-- SLOTS rest_ms letters | Q
--
-- letters  of each slot: "0" free, "1" taken, "2" taken with this key hash
-- rest_ms  how long until the first of those taken ends; -1: none does
if kind == 'f' then
    -- This means something only if the node has lost nothing.
    if not is_admitted() then
        return 'Q'
    end
    local key_hash, letters, rest = ARGV[a + 2], {}, -1
    for i = 1, ARGV[a + 1] do
        local lock = ARGV[a] .. string.format('%d', i - 1)
        local pttl = redis.call('PTTL', lock)
        letters[i] = pttl == -2 and '0' or '1'
        if pttl >= 0 and (rest < 0 or pttl < rest) then
            rest = pttl
        end
        if pttl ~= -2 and key_hash ~= '' then
            local value = redis.pcall('GETRANGE', lock, '0', '255')
            if type(value) == 'string' and
                string.find(value, '+' .. key_hash, 1, true) then
                letters[i] = '2'
            end
        end
    end
    return {'SLOTS', rest, table.concat(letters)}
end

