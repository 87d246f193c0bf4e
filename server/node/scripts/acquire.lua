-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: acquire, "a", and the
-- checks of repeat, "g", and of shared locks, "h".
--
-- Sets locks: all of them or none, with one token, and with its number, which is
-- above those of all their buckets.
--
-- ARGV  lock... token ttl_ms bucket...; of one lock: its bucket is ARGV[s]
-- G | HELD pttl value | STALE highest | Q | L | S
--
-- HELD and STALE report the first lock that cannot be set. STALE reports min_token,
-- if that is what the number is not above.
if kind == 'a' or kind == 'g' or kind == 'h' then
    -- A node that lost its data has lost the admission with it: check first.
    if not is_admitted() then
        return 'Q'
    end

    -- The command may have waited for minutes in the socket of a paused node.
    -- Its sender has given up and can no longer release the lock.
    local window_us, deadline_us = ARGV[2], ARGV[3]
    if now > tonumber(deadline_us) then
        return 'L'
    end

    -- A number far ahead of this clock would block the bucket for correct ones;
    -- one far below may be lower than a number that this node has lost.
    local digits = string.sub(ARGV[b], 1, 16)
    local number = tonumber(digits)
    if math.abs(number - now) > tonumber(window_us) then
        return 'S'
    end

    -- One lock at once; repeat.lua examines several before it sets the first.
    if kind == 'a' and n == 1 then
        -- What was read with the admission may be old in a batch of several.
        local max_token = kinds == 'a' and kept[4] or redis.call('HGET', state, 'max_token')
        local bucket, highest = ARGV[s], tonumber(max_token)
        local is_above = highest and number > highest
        if not is_above then
            -- Above min_token is nothing that the node may have lost.
            local found = redis.call('HMGET', state, bucket, 'min_token')
            local min_token = tonumber(found[2] or 0)
            highest = math.max(tonumber(found[1] or 0),
                min_token and min_token >= 0 and min_token or 2^53) -- unknown: above all numbers
        end
        local is_high, refused, oom = highest < number, nil, nil
        local is_set = is_high and not is_taken and (is_short and {err = OOM} or
            redis.pcall('SET', ARGV[a], ARGV[b], 'NX', 'PX', ARGV[b + 1]))
        if is_set and is_set.err then
            if not is_oom(is_set) then
                return is_set
            end
            is_set, oom = false, is_set
        end
        if not is_set then
            local pttl = redis.call('PTTL', ARGV[a])
            refused = pttl ~= -2 and held(ARGV[a], pttl)
            local is_text = refused and refused[1] == 'HELD' and
                refused[3] ~= ''
            if oom and (not refused or not is_text and readers(ARGV[a]) == 0) then
                return oom -- what keeps it out says more, if there is something
            elseif is_high and refused and not is_text and not oom then
                is_set = may_take(ARGV[a]) and redis.call('SET', ARGV[a],
                    ARGV[b], 'NX', 'PX', ARGV[b + 1])
                refused = not is_set and
                    held(ARGV[a], redis.call('PTTL', ARGV[a]))
            end
        end
        if is_set then
            -- Only now: a number that was not granted must not make others
            -- stale.
            promise(ARGV[b + 1], bucket, digits, is_above)
            return 'G'
        end
        -- Held; or free, but with a higher number accepted in its bucket.
        return refused or {'STALE', highest}
    end
end

-- The number of what is there if it belongs to a request of the same client: a
-- token of the same form with the same key hash; nil: it does not.
-- <16 digits>.<40 hex digits>+<22 characters>[.<owner>]
local repeated
if kind == 'g' or kind == 'p' and is_shared then
    local form = string.byte(ARGV[b], 17)
    local key_hash = string.sub(ARGV[b], 58, 80)
    repeated = function(value)
        -- string.sub would make a text of each of many readers
        if type(value) ~= 'string' or #value > 145 or #key_hash < 23 or
            string.find(value, key_hash, 58, true) ~= 58 or
            string.byte(value, 17) ~= form then
            return nil
        end
        local old = string.match(value, '^(' .. string.rep('%d', 16) ..
            ')[.~]' .. string.rep('[%da-f]', 40) .. '%+' ..
            string.rep('[%w_-]', 22))
        local rest = string.sub(value, 81)
        return (rest == '' or string.find(rest, '^%.[%w._:@/-]+$')) and
            tonumber(old) or nil
    end
end

