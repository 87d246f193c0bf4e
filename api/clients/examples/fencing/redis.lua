-- SPDX-License-Identifier: MIT
-- What a lock of redlockd protects, in Redis: hashes with a state and the highest
-- fencing token that they have seen. Redis runs a script without interruption.
--   EVAL SCRIPT 1 order:42 NUMBER [STATE]
-- With a state it writes; without one it reads, and raises the number, too.
-- Returns the state, or nil: a later holder has been there. Stop.
-- Keep these hashes on another Redis than redlockd's nodes.
local fence, state = ARGV[1], ARGV[2]
local seen = redis.call('HGET', KEYS[1], 'fence')
if seen and tonumber(seen) > tonumber(fence) then
  return nil
end
redis.call('HSET', KEYS[1], 'fence', fence)
if state then
  redis.call('HSET', KEYS[1], 'state', state)
end
return redis.call('HGET', KEYS[1], 'state')
