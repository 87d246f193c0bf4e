-- The script that runs on the nodes is made of the files of this folder, one
-- behind the other: this one first, then the kinds of call, then batch.lua,
-- which runs the calls of a batch.
--
-- KEYS  state
-- ARGV  admit median_us window_us (kind argument...)...
--
-- admit      of calls that need a vote: as it was last seen on the node; of
--            those that look at it and change it: without the replication ID
-- median_us  what the nodes' clocks showed when the batch left; 0: not known
--
-- A file's function runs one call, with the arguments from ARGV[a] on. It
-- returns the reply, a word alone or with what belongs to it, or raises the
-- error that becomes the reply.
--
-- The locks are arguments and no KEYS: a node that denies its user one of the
-- KEYS runs nothing of the script, so that one call could spoil its neighbours.

-- The node's clock in microseconds. Like the fencing numbers it stays below
-- 2^53, where Lua's doubles and the conversion to a reply are exact.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Where a number becomes a text, Lua would round it.
local function text_of(number)
    return string.format('%.0f', number)
end

-- What a field says as a number; 0: it is none, or none that we have written. To
-- Lua "nan" and "1e300" are some.
local function number_of(text)
    local number = tonumber(text) or 0
    return number >= 0 and number < 2^53 and number or 0
end

-- May the caller count votes of this node? The replication ID behind the
-- admission belongs to the memory: it changes when the node becomes a replica, if
-- only for a moment. Read when the first call of the batch asks; nothing else
-- runs meanwhile, and calls that write it are in batches of their own.
local admitted

local function is_admitted()
    if admitted == nil then
        admitted = redis.call('HGET', KEYS[1], 'admit') == ARGV[1] and
            string.find(redis.call('INFO', 'replication'),
                'master_replid:' .. string.sub(ARGV[1], -40), 1, true)
    end
    return admitted
end

-- The node's beat, which counts the looks that found it admitted and the
-- batches that promised something; 0: this is none of them.
local beat = 0

-- Writes down that the node promises something: once a batch, so that whoever
-- puts an older memory back then has one with a lower beat.
--
-- slot, number  of a new lock; nil: there is none
local function promise(slot, number)
    if beat > 0 then
        return slot and redis.call('HSET', KEYS[1], slot, number)
    end
    beat = redis.call('HINCRBY', KEYS[1], 'beat', 1)
    local voted = ARGV[2]
    if voted == '0' then
        voted = redis.call('HGET', KEYS[1], 'voted') or '0'
    end
    redis.call('HSET', KEYS[1], slot or 'voted', number or voted, 'voted', voted)
end

-- The first 256 bytes of a lock's value, or an error as a table. A token has
-- at most 255 bytes: so they tell whether the whole value is equal, and bound
-- the reply.
local function read(key)
    return redis.pcall('GETRANGE', key, 0, 255)
end

-- Held, by a key of any type; a foreign type has an empty value.
local function held(pttl, value)
    if type(value) == 'table' then -- not a string, or no permission
        if not string.find(value.err, '^WRONGTYPE') then
            return value
        end
        value = ''
    end
    return {'HELD', pttl, value}
end
