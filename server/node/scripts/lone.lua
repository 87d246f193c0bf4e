-- SPDX-License-Identifier: MIT
-- One acquire or one release of one lock, as it mostly goes: what most batches of
-- a few clients are. These lines do what acquire.lua and release.lua do, with the
-- commands that those need, and none of the functions: to make these costs a node
-- more than the call. Where anything is not as usual nothing has been written, and
-- the rest of the script does the call, which knows why.

-- Of the state: admit, generation, until, max_token. admit becomes true, or whether the
-- caller may count votes of this node, once that is known: prelude.lua.
local kept

local is_taken = false -- the lock of the only call, an acquire

if kinds == 'a' then
    local found = redis.pcall('HMGET', state, 'admit', 'generation', 'until', 'max_token')
    local admit, token, ttl_ms = ARGV[1], ARGV[7], ARGV[8]
    local digits = string.sub(token, 1, 16)
    local number, window_us = tonumber(digits), tonumber(ARGV[2])
    local last, max_token = tonumber(found[2]), tonumber(found[4])
    kept = not found.err and found
    local info = found[1] == admit and now <= tonumber(ARGV[3]) and
        number - now <= window_us and now - number <= window_us and
        max_token and number > max_token and last and last >= 0 and last < 2^53 and
        redis.pcall('INFO', 'replication')
    if type(info) == 'string' and string.find(info,
        'master_replid:' .. string.sub(admit, -40), 1, true) then
        local set = redis.pcall('SET', ARGV[6], token, 'NX', 'PX', ttl_ms)
        if set and set.ok then
            local until_us, known_us = now + ttl_ms * 1000, tonumber(found[3])
            local promised_until = found[3]
            if not (known_us and known_us >= until_us and known_us < 2^53) then
                promised_until = string.format('%d',
                    math.ceil(until_us / 100000) * 100000)
            end
            local written = redis.pcall('HSET', state, 'generation',
                string.format('%d', last + 1), ARGV[5], digits, 'max_token', digits,
                'until', promised_until)
            if type(written) == 'table' then -- no grant without it
                return {now, 0, '.', written}
            end
            return {now, last + 1, 'G'}
        end
        found[1], is_taken = true, not set
    end
end

-- Announces that a lock was deleted, with the number of its token, which shows
-- whether it is old news. Returns how many connections got it; 0 if the node
-- denies its user to publish: an announcement is a hint, and fails nothing.
--
-- A slot of a pool, whose name ends with U+001F and its number (names.h), is
-- announced twice: the pool has a channel, too, on which U+001F and its number
-- follow that of the token.
--
-- lock  "": none; a heartbeat of the announcements
local function announce(lock, token)
    local channel = string.sub(state, 1, -#'state' - 1) .. 'released:' ..
        string.sub(lock, #state - #'redlockd:state' + 1)
    local number = string.sub(token, 1, 16)
    local receivers = redis.pcall('PUBLISH', channel, number)
    local told = type(receivers) == 'number' and receivers or 0
    local pool, slot = string.match(channel, '^(.*\31)(%d%d?%d?)$')
    if pool then
        receivers = redis.pcall('PUBLISH', pool, number .. '\31' .. slot)
        told = math.max(told, type(receivers) == 'number' and receivers or 0)
    end
    return told
end

if kinds == 'r' and string.byte(ARGV[6], 17) == 46 and -- "."
    redis.pcall('GETRANGE', ARGV[5], '0', '255') == ARGV[6] and
    redis.pcall('DEL', ARGV[5]) == 1 then
    local listened_until = redis.pcall('HGET', state, 'listened_until')
    if (tonumber(listened_until) or 0) > now then
        return {now, 0, '.', {'DELETED', announce(ARGV[5], ARGV[6])}}
    end
    return {now, 0, 'D'}
end

