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
    local arguments = 4 + 2 * n -- acquire
    if kind == 'release' then
        arguments = 1 + n
    elseif kind == 'extend' then
        arguments = 3 + 2 * n
    elseif kind == 'inspect' or kind == 'listen' then
        arguments = n
    elseif kind == 'look' or kind == 'repair' or kind == 'repeat' then
        arguments = 5 + 2 * n
    elseif kind == 'admit' or kind == 'readmit' then
        arguments = 4
    elseif kind == 'revoke' then
        arguments = 3
    end
    local ok, reply = pcall(run, kind, a + 1, n)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments
end
replies[2] = beat
return replies
