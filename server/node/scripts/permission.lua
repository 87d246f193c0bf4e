-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: probe, admit, readmit and
-- revoke, "k", "m", "n" and "v".
--
-- The calls that give and take the node's permission to vote: its admission,
--
--   <epoch>:<fingerprint>:<name>:<incarnation>:<news>:<run_id>:<replication ID>
--
-- A node that may have lost what it promised has a quarantine record until it
-- is admitted:
--
--   <epoch>:<fingerprint>:<name>:<incarnation>:[first]:<run_id>:<replication ID>
--
-- incarnation  when the quarantine record was made, by this node's clock, in 16
--              digits of us, and 10 digits of chance: no two are equal. Compared
--              as texts, the greater one is later. The admission that follows
--              the quarantine record keeps it.
-- news         how many incarnations of other nodes were stored here since the
--              admission. So a caller whose admission is right knows all of
--              them.
-- first        made by a first start
--
-- A quarantine record of other names, or of a later epoch, replaces an
-- admission. What it replaced stays, until the node is admitted again, or loses
-- its data:
--
--   taken   that admission. The node has all its data, and promises nothing
--           under it any more
--   passed  "<epoch>:<fingerprint>:" of each quarantine record that has
--           replaced another one since, but for the last
--
-- And beside an admission:
--
--   dead    "<epoch>:<fingerprint>:" of the names that it has followed, which
--           are dead: so any server may take what is left of them
if string.find('kmnv', kind, 1, true) then
    -- A probe that only watches: what would be written is left out.
    local watches = kind == 'k' and ARGV[a + 8] == '1'
    local redis = not watches and redis or {call = function(command, ...)
        local reads = {INFO = true, HGET = true, HMGET = true, EXISTS = true}
        return reads[command] and redis.call(command, ...)
    end}

    local of_this_node, configuration, epoch, run_id =
        string.match(ARGV[1], '^(((%d+):[^:]*:)[^:]*:)([^:]*)$')
    epoch = tonumber(epoch)

    local replication, stats = redis.call('INFO', 'replication')
    local replid = string.match(replication, 'master_replid:(%x+)')
    local of_this_life = ':' .. run_id .. ':' .. replid

    -- The number in a field; 0: it is none, or not one that we have written.
    -- Lua also reads "nan" and "1e300" as numbers.
    local function number_of(text)
        local number = tonumber(text) or 0
        return number >= 0 and number < 2^53 and number or 0
    end

    -- The epoch at the start of an admission or a quarantine record; 0: there is none.
    local function epoch_of(text)
        return tonumber(string.match(text, '^(%d+):')) or 0
    end

    -- The incarnation in an admission or a quarantine record; '': there is none.
    local function incarnation_of(text)
        return string.match(text, '^%d+:[^:]*:[^:]*:(%d*):') or ''
    end

    local function begins(text, with)
        return string.sub(text, 1, #with) == with
    end

    local function is_of_this_life(admit)
        return string.sub(admit, -#of_this_life) == of_this_life
    end

    -- Whether it is the admission or the quarantine record of this node, in this data.
    local function is_current(text)
        return begins(text, of_this_node) and incarnation_of(text) ~= '' and
            is_of_this_life(text)
    end

    local function read_stats()
        stats = stats or redis.call('INFO', 'stats')
        return stats
    end

    local function evicted_keys()
        return tonumber(string.match(read_stats(), 'evicted_keys:(%d+)')) or 0
    end

    -- What the node has ever read from a master; '': it does not report it.
    local function read_from_master()
        return string.match(read_stats(),
            'total_net_repl_input_bytes:(%d+)') or ''
    end

    -- What shows the caller's next probe that the data is still this one:
    -- <replication ID>:<bytes read from a master>:<time, us>
    local function make_trace()
        return string.format('%s:%s:%.0f', replid, read_from_master(), now)
    end

    -- The replication ID at a probe shortly before, if it has changed since, but
    -- the data has not. Redis makes a new ID also when the first replica is
    -- attached, be it a backup, and when it frees its replication backlog. A
    -- node that was a replica itself tells the ID of its master for as long as
    -- it keeps the backlog, and has read from it.
    local function id_before(trace)
        local id, read, at = string.match(trace, '^(%x+):(%d+):(%d+)$')
        return id and id ~= replid and at + 0 <= now and
            now < at + 5000000 and read == read_from_master() and
            string.find(replication, 'role:master', 1, true) and
            string.find(replication, 'master_replid2:' .. string.rep('0', 40),
                1, true) and id
    end

    -- Whether it is of this node's name.
    local function has_name(text)
        return string.match(text, '^%d+:[^:]*:([^:]*:)%d+:') ==
            string.sub(of_this_node, #configuration + 1)
    end

    -- Others take the new incarnation for the latest, if it is later than this one.
    local function write_quarantine(nonce, latest)
        local after = number_of(string.sub(latest, 1, 16))
        local quarantine = of_this_node ..
            string.format('%016.0f', math.max(now, after + 1)) .. nonce ..
            of_this_life
        redis.call('HSET', state, 'quarantine', quarantine)
        return quarantine
    end

    -- Returns the highest generations and the latest incarnations of others
    -- that any server has told this node.
    --
    -- told       name=generation mname=incarnation… of the caller, each of 26
    --            digits; the reply has the digits, in the same order
    -- is_stored  whether what the caller knows is stored
    --
    -- Also returns whether an incarnation was stored.
    local function learn(told, is_stored)
        local learned, is_news = {}, false
        for name, known in string.gmatch(told, '(%w+)=(%d+)') do
            local kept = redis.call('HGET', state, 'w:' .. name) or ''
            if #kept ~= #known or string.find(kept, '%D') then
                kept = string.rep('0', #known)
            end
            if is_stored and known > kept then
                kept = known
                redis.call('HSET', state, 'w:' .. name, known)
                is_news = is_news or begins(name, 'm')
            end
            learned[#learned + 1] = kept
        end
        return table.concat(learned), is_news
    end

    -- Adds those configurations that are missing, and still fit.
    local function join(list, others, most)
        for each in string.gmatch(others, '%d+:[^:]*:') do
            if #list + #each <= most and
                not string.find(':' .. list, ':' .. each, 1, true) then
                list = list .. each
            end
        end
        return list
    end

    -- Writes the permission, as ARGV of admit and readmit say. The generation
    -- continues above the current time. It rises slower than time, so no older
    -- data that is put back later has one as high, even if nobody knows of it
    -- then.
    local function write_admission(quarantine, kept, durable, dead)
        generation = math.max(kept, ARGV[a + 2], ARGV[a + 3]) + 1
        redis.call('HSET', state,
            'admit', of_this_node .. incarnation_of(quarantine) .. ':0' .. of_this_life,
            'durable', durable, 'generation', generation, 'evicted', evicted_keys())
        redis.call('HDEL', state, 'quarantine', 'taken', 'passed')
        dead = join(dead, redis.call('HGET', state, 'dead') or '', 192)
        if dead ~= '' then
            redis.call('HSET', state, 'dead', dead)
        end
        learn(ARGV[a + 4], true)
    end

    -- Reads the node's permission, and quarantines the node if it has none.
    --
    -- ARGV  nonce durable high_water objects witnesses latest renews max_ttl_ms
    --       watches votes trace
    --       nonce  10 digits and ":"; then "first", of a first start; "":
    --              quarantines nothing
    --
    -- word admit quarantine taken passed max_ttl durable generation rest number
    -- short witnesses trace
    --
    --   ADMITTED     it is admitted; its generation was raised
    --   SUPERSEDED   admit or quarantine has a higher epoch
    --   OTHER        admit has this epoch, but another configuration; or so has
    --                the quarantine record, which has taken the node from a
    --                third one; or it could not tell of one more quarantine
    --                record that it passed
    --   MISNAMED     it is admitted under another name
    --   EMPTY        there was no state, and none was written
    --   BARE         there is a state without a quarantine record of this data;
    --                still none
    --   FRESH        there was no state; quarantined now
    --   QUARANTINED  had been quarantined before
    --   CREATED      quarantined now
    --
    -- high_water  the greatest generation that the caller knows of the node
    -- objects     1: the caller saw an admission and objects to first starts
    -- witnesses   of the other nodes, see learn
    -- latest      the latest incarnation that the caller knows under this name
    -- renews      1: a node whose incarnation is an earlier one is quarantined
    --             anew, and so is one whose quarantine record is of our nodes
    --             with a higher epoch
    -- watches     1: nothing is written; the nonce is "", and the response says so
    --             what else would be found
    -- votes       1: the caller saw a node admitted with its configuration, or
    --             the operator says that no other server is left
    -- trace       that of the caller's last probe on this connection; "": there was
    --             none. It shows whether the data is the one from then, though
    --             the replication ID is another one
    --
    -- The other fields show the state after the probe.
    --
    -- rest    until what the node has promised ends at the latest, us
    -- number  a higher one is above all that it has accepted
    -- short   1: the node is above maxmemory
    -- taken   of a node that is not quarantined by the caller: what it would be
    -- passed  of one with an admission of the caller's: what is dead; of others
    --         it stands behind the quarantine records, and has a lower epoch
    --         than taken
    local function probe()
        is_memory_short() -- nothing is written yet
        local fields = redis.call('HMGET', state, 'admit', 'quarantine', 'max_ttl',
            'durable', 'generation', 'evicted', 'until', 'max_token', 'min_token', 'taken',
            'passed', 'dead')
        local admit, quarantine, durable =
            fields[1] or '', fields[2] or '', fields[4]
        local nonce, high_water, latest = ARGV[a], ARGV[a + 2] + 0, ARGV[a + 5]
        local max_ttl_ms = number_of(fields[3])
        local kept = number_of(fields[5])

        local function forget()
            redis.call('HDEL', state, 'admit')
            admit = ''
        end

        local taken, passed = fields[10] or '', fields[11] or ''

        -- The data is the same: so what was written of it counts with the new
        -- replication ID, unless another server had no trace, and quarantined it.
        local before = not is_current(quarantine) and id_before(ARGV[a + 10])
        local function follow(field, text)
            local end_before = ':' .. run_id .. ':' .. before
            if string.sub(text, -#end_before) ~= end_before then
                return text
            end
            text = string.sub(text, 1, -#end_before - 1) .. of_this_life
            redis.call('HSET', state, field, text)
            return text
        end
        if before then
            admit, quarantine, taken = follow('admit', admit), follow('quarantine', quarantine),
                follow('taken', taken)
        end

        if not is_of_this_life(taken) then
            taken, passed = '', ''
        end

        -- Whether a quarantine record takes the node from the configuration
        -- that admitted it.
        local function is_to_be_taken()
            return epoch_of(admit) < epoch and has_name(admit) and
                is_of_this_life(admit)
        end

        -- Whether it could not tell of one more quarantine record that it passed.
        local function is_full()
            local other = string.match(quarantine, '^%d+:[^:]*:') or ''
            return taken ~= '' and not is_to_be_taken() and
                other ~= configuration and #passed + #other > 167
        end

        -- What is taken is kept through the quarantine records of others, not
        -- through a loss.
        local function quarantine_anew(is_lost)
            local other = string.match(quarantine, '^%d+:[^:]*:') or ''
            if is_lost then
                taken, passed = '', ''
            elseif is_to_be_taken() then
                taken, passed = admit, ''
            elseif taken ~= '' and other ~= configuration then
                passed = passed .. other
            end
            redis.call('HDEL', state, 'taken', 'passed')
            if taken ~= '' then
                redis.call('HSET', state, 'taken', taken)
            end
            if passed ~= '' then
                redis.call('HSET', state, 'passed', passed)
            end
            quarantine = write_quarantine(nonce, latest)
        end

        -- Stores what the caller knows of others if this data counts.
        local function answer(word)
            local counts = word == 'ADMITTED' or
                (begins(admit, of_this_node) and durable == '1')
            local learned, is_news = learn(ARGV[a + 4], counts)
            if is_news and word == 'ADMITTED' then
                -- Servers that do not know of it yet must probe first.
                admit = string.gsub(admit, ':(%d+)' .. of_this_life .. '$',
                    function(news)
                        return string.format(':%d', news + 1) .. of_this_life
                    end)
                redis.call('HSET', state, 'admit', admit)
            end
            local told = taken
            if word == 'BARE' and is_to_be_taken() then
                told = admit
            elseif word ~= 'SUPERSEDED' and word ~= 'OTHER' and
                not has_name(told) then
                told = ''
            end
            if taken == '' and begins(admit, of_this_node) then
                passed = fields[12] or ''
            elseif told ~= '' then
                passed = join(passed, fields[12] or '', 167)
            end
            return {
                word, string.sub(admit, 1, 192), string.sub(quarantine, 1, 192),
                string.sub(told, 1, 192), string.sub(passed, 1, 192),
                max_ttl_ms, number_of(durable), kept,
                math.max(number_of(fields[7]) - now, 0),
                math.max(number_of(fields[8]), number_of(fields[9])),
                is_short and 1 or 0, learned,
                make_trace()
            }
        end

        -- A quarantine record of our nodes with a higher epoch promises
        -- nothing, if it has taken the node from nobody.
        local may_renew = nonce ~= '' and ARGV[a + 6] == '1'
        local fingerprint = string.match(configuration, ':.*')
        local admit_epoch, quarantine_epoch = epoch_of(admit), epoch_of(quarantine)
        if admit_epoch > epoch or quarantine_epoch > epoch and not (may_renew and
            taken == '' and
            begins(quarantine, string.format('%d', quarantine_epoch) .. fingerprint)) then
            return answer('SUPERSEDED')
        end
        if admit_epoch == epoch then
            if not begins(admit, configuration) then
                return answer('OTHER')
            end
            if not begins(admit, of_this_node) and is_of_this_life(admit) then
                return answer('MISNAMED')
            end
        end
        -- Of two that take over at once, neither takes a node from the other.
        if quarantine_epoch == epoch and taken ~= '' and
            not begins(quarantine, configuration) and ARGV[a + 9] == '0' then
            return answer('OTHER')
        end

        -- From now on its data may lack what it has promised.
        if durable == '1' and ARGV[a + 1] == '0' then
            redis.call('HSET', state, 'durable', '0')
            durable = '0'
        end

        -- Keys that it has evicted since its admission, be it of an earlier
        -- epoch, or since it started. A count that fell was reset by somebody.
        if admit ~= '' then
            local evicted = evicted_keys()
            local known = is_of_this_life(admit) and number_of(fields[6]) or 0
            if evicted > known then
                forget()
            elseif evicted < known then
                redis.call('HSET', state, 'evicted', evicted)
            end
        end

        -- Older data was put back.
        if kept < high_water and nonce ~= '' then
            forget()
            kept = high_water
            quarantine_anew(true)
            redis.call('HSET', state, 'generation', kept)
            return answer('CREATED')
        end

        -- Another machine that answers to the name was quarantined later.
        if is_current(admit) and may_renew and incarnation_of(admit) < latest then
            forget()
        end
        if watches and is_current(admit) then
            return answer('ADMITTED')
        end
        if is_current(admit) then
            kept = kept + 1
            generation = kept
            max_ttl_ms = math.max(max_ttl_ms, ARGV[a + 7])
            redis.call('HSET', state, 'generation', kept, 'max_ttl', max_ttl_ms)
            return answer('ADMITTED')
        end

        local is_disputed = may_renew and incarnation_of(quarantine) < latest or
            nonce ~= '' and ARGV[a + 3] == '1' and
            string.find(quarantine, '^%d+:[^:]*:[^:]*:%d*:first:')
        if is_current(quarantine) and not is_disputed then
            return answer('QUARANTINED')
        end
        if is_full() and ARGV[a + 9] == '0' and not may_renew then
            return answer('OTHER')
        end
        local is_fresh = redis.call('EXISTS', state) == 0
        -- The next probe of another server may show that the data is the same.
        local is_early = ARGV[a + 10] == '' and begins(admit, of_this_node) and
            string.find(admit, ':' .. run_id .. ':', 1, true)
        if nonce == '' or is_early then
            return answer(is_fresh and 'EMPTY' or 'BARE')
        end
        quarantine_anew(is_current(quarantine) or may_renew)
        -- The one from before a restart stays, as evidence.
        if admit_epoch < epoch then
            forget()
        end
        return answer(is_fresh and 'FRESH' or 'CREATED')
    end

    -- Whether the quarantine record is still the one that the caller has seen:
    -- each loss makes a new one. So a command that was delayed in the socket of
    -- a paused node does nothing.
    local function is_quarantined(quarantine)
        return quarantine == ARGV[a] and is_current(quarantine)
    end

    -- Gives the node the permission to vote, once all that it may have lost
    -- has ended. From now on it accepts numbers above the minimum fencing token; no
    -- number that it may have lost is above that.
    --
    -- ARGV  quarantine durable high_water median_us witnesses max_ttl_ms
    --       number dead
    -- O | C
    local function admit()
        local fields = redis.call('HMGET', state, 'quarantine', 'generation', 'max_token')
        if not is_quarantined(fields[1]) then
            return 'C'
        end
        local min_token = ARGV[a + 6]
        redis.call('HSET', state, 'max_ttl', ARGV[a + 5], 'until', 0,
            'min_token', min_token, 'max_token', math.max(number_of(fields[3]), min_token))
        write_admission(fields[1], number_of(fields[2]), ARGV[a + 1],
            ARGV[a + 7])
        return 'O'
    end

    -- Returns the permission to a restarted node whose data the caller
    -- found to be whole.
    --
    -- ARGV  quarantine durable high_water median_us witnesses admit dead
    --       admit  from before
    -- O | C
    local function readmit()
        local fields =
            redis.call('HMGET', state, 'quarantine', 'admit', 'generation', 'durable')
        if not is_quarantined(fields[1]) or fields[2] ~= ARGV[a + 5] or
            evicted_keys() > 0 then
            return 'C'
        end
        -- Another server may have seen that it is no longer durable.
        local durable = fields[4] == '1' and ARGV[a + 1] or '0'
        write_admission(fields[1], number_of(fields[3]), durable, ARGV[a + 6])
        return 'O'
    end

    -- Takes the permission from a node whose locks may have expired too early;
    -- or that from before a restart, which is then no longer evidence. What was
    -- taken from others is none then, either.
    --
    -- ARGV  nonce latest admit   admit: from before the restart; "": none
    -- O | C
    local function revoke()
        local fields = redis.call('HMGET', state, 'admit', 'quarantine', 'taken')
        local found = fields[1]
        if not (fields[3] and is_current(fields[2] or '')) and
            (not found or not is_current(found) and found ~= ARGV[a + 2]) then
            return 'C'
        end
        redis.call('HDEL', state, 'admit', 'taken', 'passed')
        write_quarantine(ARGV[a], ARGV[a + 1])
        return 'O'
    end

    local run = {k = probe, m = admit, n = readmit, v = revoke}
    return run[kind]()
end
