-- The calls that give and take the node's permission to vote.
if string.find('kmnv', kind, 1, true) then
    local admit, median_us = ARGV[1], ARGV[2]
    local of_this_node, epoch, fingerprint, run_id =
        string.match(admit, '^((%d+):([^:]*):[^:]*:)([^:]*)$')
    epoch = tonumber(epoch)

    local memory = string.match(redis.call('INFO', 'replication'),
        'master_replid:(%x+)')
    local current = admit .. ':' .. memory
    local of_this_memory = epoch .. ':' .. run_id .. ':' .. memory .. ':'

    -- Lua's own conversion would round the number.
    local function text_of(number)
        return string.format('%.0f', number)
    end

    -- The number in a field; 0: it is none, or not one that we have written.
    -- Lua also reads "nan" and "1e300" as numbers.
    local function number_of(text)
        local number = tonumber(text) or 0
        return number >= 0 and number < 2^53 and number or 0
    end

    -- The epoch at the start of an admission or a mark; 0: there is none.
    local function epoch_of(text)
        return tonumber(string.match(text, '^(%d+):')) or 0
    end

    -- When a mark was made; 0: unknown.
    local function born_of(mark)
        return number_of(string.match(mark, '^%d+:[^:]*:[^:]*:(%d+):'))
    end

    local function begins(text, with)
        return string.sub(text, 1, #with) == with
    end

    -- How many keys the node has evicted since it started.
    local function evicted_keys()
        local info = redis.call('INFO', 'stats')
        return string.match(info, 'evicted_keys:(%d+)') or '0'
    end

    -- Stores when the quarantine began; 0: unknown, because the command was
    -- delayed, and the node may have gone on promising in between.
    local function write_mark(nonce, deadline_us)
        local born = now <= tonumber(deadline_us) and median_us or '0'
        local mark = of_this_memory .. born .. ':' .. nonce
        if redis.call('EXISTS', state) == 0 then -- no slot has a number
            redis.call('HSET', state, 'top', '0')
        end
        redis.call('HSET', state, 'mark', mark)
        return mark
    end

    -- Writes the permission, at the end of the quarantine. The beat continues
    -- above the current time. It rises slower than time, so no older memory
    -- that is put back later has one as high, even if nobody knows of it then.
    local function write_admission(durable, kept, floor)
        beat = math.max(kept, tonumber(floor), tonumber(median_us)) + 1
        redis.call('HSET', state, 'admit', current, 'durable', durable,
            'beat', text_of(beat), 'seen', median_us, 'evicted', evicted_keys())
        redis.call('HDEL', state, 'mark')
    end

    -- What the node has heard of others: of each the highest beat that any
    -- server saw, so no server's floor is above it; and when it was last marked.
    --
    -- told      name=beat mname=born… of the caller; the reply has the same
    --           names
    -- is_raised whether to store what the caller knows
    local function hear(told, is_raised)
        local heard = {}
        for name, known in string.gmatch(told, '(%w+)=(%d+)') do
            local field = 'w:' .. name
            local kept = number_of(redis.call('HGET', state, field))
            if is_raised and tonumber(known) > kept then
                kept = tonumber(known)
                redis.call('HSET', state, field, known)
            end
            heard[#heard + 1] = name .. '=' .. text_of(kept)
        end
        return table.concat(heard, ' ')
    end

    -- Looks at the node's permission, and marks the node if it has none.
    --
    -- ARGV  nonce deadline_us durable floor objects witnesses latest_us
    --       nonce "": mark nothing
    --
    -- word admit mark max_ttl durable beat seen voted witnesses
    --
    --   ADMITTED    admit is the caller's; its beat was raised
    --   SUPERSEDED  admit or mark has a higher epoch
    --   FOREIGN     admit has this epoch, but another configuration
    --   EMPTY       there was no state, and none was written
    --   BARE        there is a state without a mark of this memory; still none
    --   FRESH       there was no state; marked now
    --   MARKED      had been marked before
    --
    -- floor      the greatest beat that the caller knows of the node
    -- objects    1: the caller saw an admission and objects to first starts
    -- witnesses  of the other nodes: name=beat mname=born…
    -- latest_us  when the latest mark was made that the caller knows of under
    --            this node's name; before median_us; 0: none
    --
    -- The fields after the word show the state after the look.
    local function look()
        local fields = redis.call('HMGET', state, 'admit', 'mark', 'max_ttl',
            'durable', 'beat', 'seen', 'voted', 'evicted')
        local admit, mark, durable =
            fields[1] or '', fields[2] or '', fields[4]
        local nonce, floor = ARGV[a], tonumber(ARGV[a + 3])
        local kept = number_of(fields[5])

        local function forget()
            redis.call('HDEL', state, 'admit')
            admit = ''
        end

        -- What the caller knows of others is stored if this memory counts.
        local function answer(word)
            local counts = word == 'ADMITTED' or
                (begins(admit, of_this_node) and durable == '1')
            return {
                word, string.sub(admit, 1, 160), string.sub(mark, 1, 160),
                number_of(fields[3]), number_of(durable), kept,
                number_of(fields[6]), number_of(fields[7]),
                hear(ARGV[a + 5], counts)
            }
        end

        local admit_epoch = epoch_of(admit)
        if admit_epoch > epoch or epoch_of(mark) > epoch then
            return answer('SUPERSEDED')
        end
        if admit_epoch == epoch and
            not begins(admit, epoch .. ':' .. fingerprint .. ':') then
            return answer('FOREIGN')
        end

        -- From now on its memory may lack what it has promised.
        if durable == '1' and ARGV[a + 2] == '0' then
            redis.call('HSET', state, 'durable', '0')
            durable = '0'
        end

        -- It has evicted keys since it started.
        local evicted = admit == current and fields[8] or '0'
        if admit ~= '' and evicted ~= evicted_keys() then
            forget()
        end

        -- An older memory was put back, or another machine answers to the name
        -- and goes on promising. The quarantine begins now, and again whenever
        -- a higher beat of that machine is reported.
        if kept < floor and nonce ~= '' then
            forget()
            kept = floor
            mark = write_mark(nonce, ARGV[a + 1])
            redis.call('HSET', state, 'beat', text_of(kept))
            return answer('CREATED')
        end

        if admit == current then
            kept = kept + 1
            beat = kept
            redis.call('HSET', state, 'beat', text_of(kept))
            if median_us ~= '0' then
                redis.call('HSET', state, 'seen', median_us)
                fields[6] = median_us
            end
            return answer('ADMITTED')
        end

        -- Another machine that answers to the name was marked later: only the
        -- one with the latest mark may be admitted.
        local is_old = born_of(mark) < tonumber(ARGV[a + 6])
        local is_first = string.find(mark, ':first-', 1, true)
        local is_disputed = is_old or is_first and ARGV[a + 4] == '1'
        if begins(mark, of_this_memory) and
            not (is_disputed and nonce ~= '') then
            return answer('MARKED')
        end
        local is_fresh = redis.call('EXISTS', state) == 0
        if nonce == '' then
            return answer(is_fresh and 'EMPTY' or 'BARE')
        end
        mark = write_mark(nonce, ARGV[a + 1])
        -- The one from before a restart stays, as evidence.
        if admit_epoch < epoch then
            forget()
        end
        return answer(is_fresh and 'FRESH' or 'CREATED')
    end

    -- Whether the mark is still the one that the caller has seen: each loss
    -- makes a new one. So a command that was delayed in the socket of a paused
    -- node does nothing.
    local function is_marked(mark)
        return mark == ARGV[a] and begins(mark, of_this_memory)
    end

    -- Gives the node the permission to vote, at the end of its quarantine.
    --
    -- ARGV  mark max_ttl_ms durable floor
    -- O | C
    local function admit()
        local fields = redis.call('HMGET', state, 'mark', 'beat')
        if not is_marked(fields[1]) then
            return 'C'
        end
        redis.call('HSET', state, 'max_ttl', ARGV[a + 1])
        write_admission(ARGV[a + 2], number_of(fields[2]), ARGV[a + 3])
        return 'O'
    end

    -- Returns the permission to a restarted node whose memory the caller
    -- found to be whole.
    --
    -- ARGV  mark admit durable floor   admit: from before the restart
    -- O | C
    local function readmit()
        local fields =
            redis.call('HMGET', state, 'mark', 'admit', 'beat', 'durable')
        if not is_marked(fields[1]) or fields[2] ~= ARGV[a + 1] or
            evicted_keys() ~= '0' then
            return 'C'
        end
        -- Another server may have seen that it is no longer durable.
        local durable = fields[4] == '1' and ARGV[a + 2] or '0'
        write_admission(durable, number_of(fields[3]), ARGV[a + 3])
        return 'O'
    end

    -- Takes the permission from a node whose locks may have expired too early;
    -- or that from before a restart, which is then no longer evidence.
    --
    -- ARGV  nonce deadline_us admit   admit: from before the restart; "": none
    -- O | C
    local function revoke()
        local found = redis.call('HGET', state, 'admit')
        if found ~= current and found ~= ARGV[a + 2] then
            return 'C'
        end
        redis.call('HDEL', state, 'admit')
        write_mark(ARGV[a], ARGV[a + 1])
        return 'O'
    end

    local run = {k = look, m = admit, n = readmit, v = revoke}
    return run[kind]()
end
