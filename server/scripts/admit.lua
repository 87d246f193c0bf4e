-- Writes the permission to vote.
--
-- KEYS  state
-- ARGV  admit
-- DONE now

local time = redis.call('TIME')

redis.call('HSET', KEYS[1], 'admit', ARGV[1])
return {'DONE', time[1] * 1000000 + time[2]}
