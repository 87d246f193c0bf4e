-- Writes the permission to vote.
--
-- KEYS  state
-- ARGV  admit
-- DONE now
--
-- Only if it is not there: this comes every second, and a write would cost a
-- sync of the append-only file each time.

if redis.call('HGET', KEYS[1], 'admit') ~= ARGV[1] then
    redis.call('HSET', KEYS[1], 'admit', ARGV[1])
end
return {'DONE', now}
