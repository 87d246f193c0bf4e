-- Held by a key of any type; a foreign type has an empty value.
--
-- Only the first 256 bytes of the value: a token has at most 255, so this shows
-- whether the whole value is equal, and bounds the reply.
value = value or redis.pcall('GETRANGE', ARGV[a], '0', '255')
if type(value) == 'table' then -- not a string, or no permission
    if not string.find(value.err, '^WRONGTYPE') then
        return value
    end
    value = ''
end
return {'HELD', pttl, value}
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
    local kind, arguments = ARGV[a], 6 -- acquire, look
    if kind == 'release' then
        arguments = 2
    elseif kind == 'extend' then
        arguments = 5
    elseif kind == 'inspect' or kind == 'listen' then
        arguments = 1
    elseif kind == 'repair' then
        arguments = 7
    elseif kind == 'admit' or kind == 'readmit' then
        arguments = 4
    elseif kind == 'revoke' then
        arguments = 3
    end
    local ok, reply = pcall(run, kind, a + 1)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments
end
replies[2] = beat
return replies
