-- The calls that give and take the node's permission to vote. They are rare:
-- one function holds them all, so that a batch of votes need not build them.
local function permission(a)
    -- Where a number becomes a text, Lua would round it.
    local function time_text()
        return string.format('%.0f', now)
    end

    -- What a field says as a number; 0: it is none. To Lua "nan" is one, which
    -- no comparison would refuse.
    local function number_of(text)
        local number = tonumber(text) or 0
        return number == number and number or 0
    end

    -- Writes the permission; the quarantine that led to it is over.
    local function write_admission(max_ttl_ms)
        local greatest = number_of(redis.call('HGET', KEYS[1], 'max_ttl'))
        if tonumber(max_ttl_ms) > greatest then
            redis.call('HSET', KEYS[1], 'max_ttl', max_ttl_ms)
        end
        redis.call('HSET', KEYS[1], 'admit', ARGV[1], 'beat', time_text())
        redis.call('HDEL', KEYS[1], 'mark')
        admitted = true
    end

    -- The epoch in front of an admission or a mark; 0: there is none.
    local function epoch_of(text)
        return tonumber(string.match(text, '^(%d+):')) or 0
    end

    -- Looks at the node's permission, and marks the node if it has none.
    --
    -- ARGV  nonce durable                 nonce "": mark nothing
    --
    -- word admit mark max_ttl durable beat
    --
    --   ADMITTED    admit is the caller's; beat was renewed
    --   SUPERSEDED  admit or mark is of a higher epoch
    --   FOREIGN     admit is of this epoch, but of another configuration
    --   EMPTY       there is no state at all; still is none
    --   BARE        there is a state without a mark of this life; still is none
    --   FRESH       there was no state at all; marked now
    --   CREATED     marked now
    --   MARKED      had been marked before
    --
    -- What is behind the word is as it was before, but for a mark made now.
    local function look()
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
            -- Never backwards: that would look like an older snapshot.
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

    -- Gives the node the permission to vote, at the end of its quarantine.
    --
    -- ARGV  mark max_ttl_ms durable
    -- DONE | CHANGED
    --
    -- Only if the node was lost no other time since: each loss makes another
    -- mark. So a command that lay in a paused node's socket does nothing.
    local function admit()
        if redis.call('HGET', KEYS[1], 'mark') ~= ARGV[a] then
            return 'CHANGED'
        end
        redis.call('HSET', KEYS[1], 'durable', ARGV[a + 2])
        write_admission(ARGV[a + 1])
        return 'DONE'
    end

    -- Gives the permission to vote back to a durable node that was restarted.
    --
    -- ARGV  admit beat max_ttl_ms       admit: as it was read, of its older life
    -- DONE | CHANGED
    --
    -- Its memory is whole only if it was durable all the time, which the beat
    -- tells: a life in between without the append-only file, a backup put back,
    -- a sleep, and the beat is older than any lock may be.
    local function readmit()
        local state = redis.call('HMGET', KEYS[1], 'admit', 'durable', 'beat')
        local beat = number_of(state[3])
        if state[1] ~= ARGV[a] or state[2] ~= '1' or
            beat < tonumber(ARGV[a + 1]) or beat > now or
            now - beat >= ARGV[a + 2] * 1000 then
            return 'CHANGED'
        end
        write_admission(ARGV[a + 2])
        return 'DONE'
    end

    -- Takes the permission from a node that lost a lock before its time.
    --
    -- ARGV  nonce spent
    -- DONE | CHANGED
    --
    -- spent: a mark that had led to an admission. If it is back, an older
    -- memory was put back under the same life. "": none.
    local function revoke()
        if not is_admitted() and
            redis.call('HGET', KEYS[1], 'mark') ~= ARGV[a + 1] then
            return 'CHANGED'
        end
        local epoch, run_id = string.match(ARGV[1], '^(%d+):[^:]*:([^:]*)$')
        redis.call('HDEL', KEYS[1], 'admit')
        redis.call('HSET', KEYS[1],
            'mark', epoch .. ':' .. run_id .. ':' .. ARGV[a])
        admitted = false
        return 'DONE'
    end

    local run = {
        look = look, admit = admit, readmit = readmit, revoke = revoke
    }
    return run[ARGV[a - 1]]()
end

