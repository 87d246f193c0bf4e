#!lua flags=no-writes
-- SPDX-License-Identifier: MIT
-- A script of its own: which commands the node refuses to redlockd's user, or does
-- not know, of all that redlockd sends and its other script calls. Each connection
-- for calls runs it before the first call, and each probe again.
--
-- ARGV  state
--
-- Returns two texts, of what redlockd needs and of what it can do without: words,
-- parted by spaces, which are ACL rules that would grant what is missing ("+del",
-- "~app:*"), or names of commands that the node does not know ("DEL"), as after
-- rename-command.
--
-- Nothing is written: with its flag the node refuses all writes of this script. So
-- a command that is refused may be called for the words of the refusal.
--
-- Each command stands here with as many arguments as the script gives it: Redis
-- ends itself if acl_check_cmd gets too few for the command's keys.
local state = ARGV[1]
local own = string.sub(state, 1, -#'state' - 1) -- <prefix>redlockd:
local all = string.sub(own, 1, -#'redlockd:' - 1)
local channel = own .. 'released:'

local needed = {
    {'TIME'},
    {'INFO', 'replication'},
    {'HGET', state, 'f'},
    {'HMGET', state, 'f'},
    {'HSET', state, 'f', '0'},
    {'HDEL', state, 'f'},
    {'EXISTS', state},
    {'SET', state, '0', 'NX', 'GET', 'PX', '1'},
    {'MGET', state},
    {'GETRANGE', state, '0', '0'},
    {'PTTL', state},
    {'PEXPIRE', state, '1'},
    {'PEXPIREAT', state, '1'},
    {'PEXPIRETIME', state},
    {'DEL', state},
    {'ZADD', state, '0', 'm'},
    {'ZREM', state, 'm'},
    {'ZSCORE', state, 'm'},
    {'ZMSCORE', state, 'm'},
    {'ZCOUNT', state, '0', '0'},
    {'ZRANGE', state, '0', '0'},
    {'ZREMRANGEBYSCORE', state, '0', '0'},
}
local optional = {
    {'SCAN', '0'},
    {'CONFIG', 'GET', 'appendonly'},
    {'ACL', 'GETUSER', 'default'},
    {'CLIENT', 'SETNAME', 'redlockd'},
    {'UNSUBSCRIBE', channel},
}
local containers = {CONFIG = true, ACL = true, CLIENT = true}

-- Adds the word for a command that the node would not run. is_doubtful: keys or
-- channels may be what it refuses. Then only the words of the refusal tell, which
-- the node counts and logs: so they are asked for rarely.
local function add(words, command, is_doubtful)
    local name = command[1]
    local is_known, may = pcall(redis.acl_check_cmd, unpack(command))
    if not is_known then
        words[#words + 1] = name
    elseif not may then
        local reply = is_doubtful and redis.pcall(unpack(command))
        local refusal = type(reply) == 'table' and reply.err or ''
        -- "a key", "the keys", "a channel", "the channel"
        if not string.find(refusal, '[ae] key') and
            not string.find(refusal, '[ae] channel') then
            words[#words + 1] = '+' .. string.lower(name) ..
                (containers[name] and '|' .. string.lower(command[2]) or '')
        end
    end
    return is_known and may
end

-- Whether a key may be read and written. That this script runs shows that EVALSHA
-- itself is allowed: so its key is what is refused, whatever else is.
local function is_open(key)
    return redis.acl_check_cmd('EVALSHA', string.rep('0', 40), '1', key)
end

local needs, has_keys = {}, is_open(state)
for _, command in ipairs(needed) do
    add(needs, command, not has_keys)
end
if not has_keys then
    needs[#needs + 1] = '~' .. all .. '*'
elseif not is_open(own .. 'tombstone:') or not is_open(own .. 'repeat:') then
    needs[#needs + 1] = '~' .. own .. '*'
end

local lacks = {}
for _, command in ipairs(optional) do
    add(lacks, command)
end
-- A script may not subscribe: so only PUBLISH tells a refused channel from a
-- command.
local count = #lacks
local publishes = add(lacks, {'PUBLISH', channel, '0'}, true)
local is_channel = not publishes and #lacks == count
local subscribes = is_channel or add(lacks, {'SUBSCRIBE', channel})
if is_channel or not publishes and not subscribes then
    lacks[#lacks + 1] = '&' .. channel .. '*'
end
return {table.concat(needs, ' '), table.concat(lacks, ' ')}
