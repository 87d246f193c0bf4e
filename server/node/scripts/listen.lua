-- Lets releases be announced for a while, and announces a release of nothing: a
-- heartbeat. Who hears it knows that announcements of this node arrive.
--
-- ARGV  listen_us
-- DONE
--
-- A node without state gets none by this: it must go on looking empty. So it
-- announces nothing, and has no heartbeat.
if kind == 'listen' then
    if redis.call('EXISTS', KEYS[1]) == 1 then
        redis.call('HSET', KEYS[1], 'listened_until',
            string.format('%.0f', now + tonumber(ARGV[a])))
        listened = nil
        announce('', '')
    end
    return 'DONE'
end

