-- Looks at the node's permission to vote, and marks the node if it has none.
--
-- ARGV  nonce durable                 nonce "": mark nothing
--
-- word admit mark max_ttl durable beat
--
--   ADMITTED    admit is the caller's; beat was renewed
--   SUPERSEDED  admit or mark is of a higher epoch
--   FOREIGN     admit is of this epoch, but of another configuration
--   EMPTY       there is no state at all, and still is none
--   BARE        there is a state without a mark of this life, and still is none
--   FRESH       there was no state at all; marked now
--   CREATED     marked now
--   MARKED      had been marked before
--
-- What is behind the word is as it was before, but for a mark made now.
local function look(a)
    local state = redis.call('HMGET', KEYS[1],
        'admit', 'mark', 'max_ttl', 'durable', 'beat')
    local admit, mark, durable = state[1] or '', state[2] or '', state[4]
    local beat = number_of(state[5])

    local function answer(word)
        return {
            word, string.sub(admit, 1, 128), string.sub(mark, 1, 128),
            number_of(state[3]), number_of(durable), beat
        }
    end

    local epoch, fingerprint, run_id =
        string.match(ARGV[1], '^(%d+):([^:]*):([^:]*)$')
    epoch = tonumber(epoch)
    local admit_epoch = epoch_of(admit)
    if admit_epoch > epoch or epoch_of(mark) > epoch then
        return answer('SUPERSEDED')
    end

    -- From now on its memory may be older than what it has promised.
    if durable == '1' and ARGV[a + 1] == '0' then
        redis.call('HSET', KEYS[1], 'durable', '0')
        durable = '0'
    end

    if admit == ARGV[1] then
        -- Never backwards: that would look like a snapshot that was put back.
        if now > beat then
            redis.call('HSET', KEYS[1], 'beat', time_text())
        end
        return answer('ADMITTED')
    end
    local of_this_epoch = epoch .. ':' .. fingerprint .. ':'
    if admit_epoch == epoch and
        string.sub(admit, 1, #of_this_epoch) ~= of_this_epoch then
        return answer('FOREIGN')
    end

    local of_this_life = epoch .. ':' .. run_id .. ':'
    if string.sub(mark, 1, #of_this_life) == of_this_life then
        return answer('MARKED')
    end
    local is_fresh = redis.call('EXISTS', KEYS[1]) == 0
    if ARGV[a] == '' then
        return answer(is_fresh and 'EMPTY' or 'BARE')
    end
    mark = of_this_life .. ARGV[a]
    redis.call('HSET', KEYS[1], 'mark', mark)
    -- That of an older life stays, as evidence for a durable restart.
    if admit_epoch < epoch then
        redis.call('HDEL', KEYS[1], 'admit')
    end
    return answer(is_fresh and 'FRESH' or 'CREATED')
end

