-- SPDX-License-Identifier: MIT
-- Functions of the script: run_readers() does the work of run() for many acquires
-- and releases of one shared lock, and batch.lua calls it.

-- The calls from this letter on that are a reader's without a key and about the
-- lock of the first: of each its kind and where its lock, token and bucket are.
-- ";" parts them.
--
-- a  where the arguments of the acquires begin
local function next_readers(at, a)
    local calls, bucket, release = {}, bucket_at, lock_at
    repeat
        local kind = string.sub(kinds, at, at)
        local call
        if kind == 'h' then
            bucket = bucket + 1
            call = {kind, a, a + 1, bucket}
            a = a + 4
        elseif kind == 'r' then
            release = release + 1
            call = {kind, release, release + token_offset}
        end
        if not call or string.byte(ARGV[call[3]], 17) ~= 126 or
            string.byte(ARGV[call[3]], 58) == 43 or
            calls[1] and ARGV[call[2]] ~= ARGV[calls[1][2]] then
            break
        end
        calls[#calls + 1] = call
        at = at + 2
    until string.sub(kinds, at - 1, at - 1) ~= ';'
    return calls
end

-- Runs them as one: what share.lua and release.lua read for each is read once,
-- and what they write is written once. No token may be there twice. Returns the
-- answers, or nil if not all is as it mostly is: then each call can still be run.
local function run_as_one(calls)
    local lock, bucket, tokens, seen = ARGV[calls[1][2]], nil, {}, {[INTENT] = true}
    local releases = 0
    for i, call in ipairs(calls) do
        local token = ARGV[call[3]]
        bucket = bucket or call[4] and ARGV[call[4]]
        if seen[token] or call[4] and ARGV[call[4]] ~= bucket then
            return nil
        end
        tokens[i], seen[token] = token, true
        releases = call[1] == 'r' and releases + 1 or releases
    end
    local can_ask, is_whole = pcall(is_admitted)
    if not can_ask or not is_whole or bucket and now > ARGV[3] + 0 then
        return nil
    end

    local scores = redis.pcall('ZMSCORE', lock, INTENT, unpack(tokens))
    local holders = redis.pcall('ZCOUNT', lock, now_ms, '+inf')
    local known = bucket and
        redis.pcall('HMGET', state, bucket, bucket .. 's', 'min_token', 'max_token') or {}
    local highest, min_token = tonumber(known[1] or 0), tonumber(known[3] or 0)
    -- One of these is the last, however many leave.
    local lasts = redis.pcall('ZRANGE', lock, '0', releases, 'REV')
    if scores.err or scores[1] or lasts.err or type(holders) ~= 'number' or
        known.err or not highest then
        return nil
    end
    for i = 1, #lasts do
        if string.byte(lasts[i], 17) ~= 126 then
            return nil
        end
    end
    local writer = writer_in(known[2], highest)
    local least = math.max(writer, min_token and min_token >= 0 and min_token or 2^53)

    local answers, added, removed, emptied = {}, {}, {}, {}
    local longest_ms = 0
    for i, token in ipairs(tokens) do
        local number, score = tonumber(string.sub(token, 1, 16)), scores[i + 1]
        if calls[i][1] == 'r' then
            answers[i] = 'F'
            if score then
                removed[#removed + 1] = token
            end
            if score and score + 0 >= now_ms then
                answers[i], holders = 'D', holders - 1
                emptied[i] = holders == 0
            end
        elseif score or not number or math.abs(number - now) > ARGV[2] + 0 then
            return nil
        elseif number > least and holders >= ARGV[calls[i][3] + 2] + 0 then
            return nil
        elseif number > least then
            local ttl_ms = ARGV[calls[i][3] + 1] + 0
            answers[i], holders = 'G', holders + 1
            highest = math.max(number, highest)
            longest_ms = math.max(longest_ms, ttl_ms)
            added[#added + 1] = now_ms + ttl_ms
            added[#added + 1] = token
        else
            answers[i] = {'STALE', least}
        end
    end

    if added[1] and is_short then
        return nil -- those who leave do
    end
    local refused = added[1] and redis.pcall('ZADD', lock, unpack(added))
    if type(refused) ~= 'table' and removed[1] then
        refused = redis.pcall('ZREM', lock, unpack(removed))
    end
    if type(refused) == 'table' then
        return nil -- the node denies its user the lock, or has no memory left
    end
    if added[1] or removed[1] then
        local last = redis.pcall('ZRANGE', lock, '0', '0', 'REV', 'WITHSCORES')
        if lasts[1] then -- those that have ended
            redis.pcall('ZREMRANGEBYSCORE', lock, '-inf', '(' .. now_ms)
        end
        refused = last[2] and redis.pcall('PEXPIREAT', lock, last[2])
    end
    if type(refused) == 'table' then
        for i = 2, #added, 2 do
            redis.pcall('ZREM', lock, added[i])
        end
        return nil
    end

    local is_kept, reason = true, nil
    if added[1] then
        local max_token, digits = tonumber(known[4]), string.format('%.0f', highest)
        is_kept, reason = pcall(promise, longest_ms, bucket, digits,
            max_token and highest > max_token, bucket .. 's', digits .. ':' .. writer)
        reason = type(reason) == 'table' and reason or {err = reason}
    end
    for i, token in ipairs(tokens) do
        if answers[i] == 'G' and not is_kept then
            answers[i] = reason
        elseif emptied[i] and is_listened() then
            answers[i] = {'DELETED', announce(lock, token)}
        end
    end
    return answers
end

-- Runs the calls, and adds their answers after the first count. Returns where the
-- next arguments begin, and whether an answer is more than a letter.
local function run_readers(calls, answers, count, a)
    local replies, has_details = #calls > 2 and run_as_one(calls), false
    for i, call in ipairs(calls) do
        local kind, lock, token, bucket = unpack(call)
        if kind == 'h' then
            bucket_at, a = bucket, a + 4
        else
            lock_at = lock
        end
        local reply = replies and replies[i] or
            run_safely(kind, lock, 1, token, bucket)
        answers[count + i] = reply
        has_details = has_details or type(reply) == 'table'
    end
    return a, has_details
end
