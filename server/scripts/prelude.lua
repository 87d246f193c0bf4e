-- The script that runs on the nodes is made of the files of this folder, one
-- behind the other: this one first, then the kinds of call, then batch.lua,
-- which runs the calls of a batch.
--
-- KEYS  state
-- ARGV  admit window_us (kind argument...)...
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

-- May the caller count votes of this node? Read when the first call of the
-- batch asks; nothing else runs meanwhile, and those that write it tell.
local admitted

local function is_admitted()
    if admitted == nil then
        admitted = redis.call('HGET', KEYS[1], 'admit') == ARGV[1]
    end
    return admitted
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

