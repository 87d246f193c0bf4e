-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: listen, "l".
--
-- Lets releases be announced for a while, and announces a release of nothing: a
-- heartbeat. A server that hears it knows that announcements of this node
-- arrive.
--
-- ARGV  listen_us
-- O
--
-- A node without state gets none by this: it must go on to appear empty. So it
-- announces nothing, and has no heartbeat.
if kind == 'l' then
    if redis.call('EXISTS', state) == 1 then
        redis.call('HSET', state, 'listened_until',
            string.format('%.0f', now + tonumber(ARGV[a])))
        announce('', '')
    end
    return 'O'
end

