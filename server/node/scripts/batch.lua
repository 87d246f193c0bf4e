end -- of run

-- Runs the calls of the batch in order; the reply is
--
--   now beat reply...
--
-- beat: of the node, if a call promised something or found it admitted;
-- otherwise 0. An error of one call is its reply; the other calls still run.

local replies = {now, 0}
local a = 4
while a <= #ARGV do
    local kind, n = ARGV[a], 1
    if #kind < 3 then -- the count of its locks; no kind is as short
        n = tonumber(kind)
        a = a + 1
        kind = ARGV[a]
    end
    local arguments
    if kind == 'acquire' then
        arguments = 4 + 2 * n
    elseif kind == 'release' then
        arguments = 1 + n
    elseif kind == 'extend' then
        arguments = 3 + 2 * n
    elseif kind == 'look' or kind == 'repair' or kind == 'repeat' then
        arguments = 5 + 2 * n
    elseif kind == 'inspect' or kind == 'listen' then
        arguments = n
    elseif kind == 'admit' or kind == 'readmit' then
        arguments = 4
    else -- revoke
        arguments = 3
    end
    local ok, reply, pttl, lock, value = pcall(run, kind, a + 1, n)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    elseif pttl then
        -- Held by a key of any type, with or without TTL; a foreign type has an
        -- empty value. Only its first 256 bytes: a token has at most 255, so
        -- this shows whether the whole value is equal, and bounds the reply.
        value = value or redis.pcall('GETRANGE', lock, '0', '255')
        if type(value) == 'table' and string.find(value.err, '^WRONGTYPE') then
            value = ''
        end
        reply = type(value) == 'table' and value or {'HELD', pttl, value}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments
end
replies[2] = beat
return replies
