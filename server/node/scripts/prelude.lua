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
-- The locks are arguments and no KEYS: a node that denies its user one of the
-- KEYS runs nothing of the script, so that one call could spoil its neighbours.

-- The node's clock in microseconds. Like the fencing numbers it stays below
-- 2^53, where Lua's doubles and the conversion to a reply are exact.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

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
    beat = redis.call('HINCRBY', KEYS[1], 'beat', '1')
    local voted = ARGV[2]
    if voted == '0' then
        voted = redis.call('HGET', KEYS[1], 'voted') or '0'
    end
    redis.call('HSET', KEYS[1], slot or 'voted', number or voted, 'voted', voted)
end

-- Runs one call, with the arguments from ARGV[a] on. Returns the reply, a word
-- alone or with what belongs to it, or raises the error that becomes the reply.
--
-- The files that follow are its body, each of them for one kind of call. What
-- does not return there has found the lock held for pttl ms, and may have read
-- its value. One function for all: they are made anew for each batch.
local function run(kind, a)
local pttl, value

