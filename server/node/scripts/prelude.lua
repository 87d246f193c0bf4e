-- The script that runs on the nodes is made of the files of this folder: this
-- one first, then the kinds of call, then batch.lua, which runs the calls of a
-- batch.
--
-- KEYS  state
-- ARGV  admit median_us window_us ([count] kind argument...)...
--
-- admit      of calls that need a vote: as it was last seen on the node; of
--            those that look at it and change it: without the replication ID
-- median_us  of the nodes' clocks when the batch was sent; 0: unknown
-- count      of the call's locks, if it has several: lock... and slot... stand
--            for as many arguments
--
-- The locks are arguments, not KEYS: a node that denies its user one of the
-- KEYS runs nothing of the script, so one call could fail all others.

-- The node's clock in microseconds. Like the fencing numbers it stays below
-- 2^53, where Lua's doubles and the conversion to a reply are exact.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Whether the caller may count votes of this node. The replication ID at the
-- end of the admission belongs to the memory: it changes if the node becomes a
-- replica, even for a moment. It is read when the first call of the batch asks.
-- Nothing else runs in between, and calls that write it have their own batches.
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

-- Records that the node promises something, once a batch: an older memory that
-- is put back afterwards has a lower beat.
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

-- Publishes a message on the channel of a resource. Returns how many connections
-- got it; 0 if the node denies its user to publish: an announcement
-- is a hint, and fails nothing.
local function announce(resource, message)
    local channel = string.sub(KEYS[1], 1, -#'state' - 1) .. 'released:'
    local receivers = redis.pcall('PUBLISH', channel .. resource, message)
    return type(receivers) == 'number' and receivers or 0
end

-- Whether a server listens for releases: it said so a short time ago. Read when
-- the first release of the batch deletes a lock.
local listened

-- Runs one call. Its n locks, if it is about locks, are the arguments from
-- ARGV[a] on; the other ones follow from ARGV[b] on. Returns the reply, a word
-- alone or with its fields, or raises the error that becomes the reply.
--
-- If a lock is held, it returns what is needed to tell of it:
--
--   'HELD' pttl lock value   value: nil if it was not read
--
-- The files that follow are its body, one for each kind of call. One function
-- for all, because each batch creates its functions anew.
local function run(kind, a, n)
local b = a + n

