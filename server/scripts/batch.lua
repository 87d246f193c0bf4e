-- Runs the calls of a batch, in their order; what is answered is
--
--   now beat reply...
--
-- beat: of the node, if a call promised something or found it admitted; else 0.
-- An error of one call is its reply: the others neither see it nor repeat it.

-- Tables and functions are made anew for each batch, and that takes as long as
-- some calls: hence no table of the kinds.
local replies = {now, 0}
local a = 4
while a <= #ARGV do
    local kind, run, arguments = ARGV[a], permission, 4 -- admit, readmit
    if kind == 'acquire' then
        run, arguments = acquire, 6
    elseif kind == 'release' then
        run, arguments = release, 2
    elseif kind == 'extend' then
        run, arguments = extend, 5
    elseif kind == 'inspect' then
        run, arguments = inspect, 1
    elseif kind == 'repair' then
        run, arguments = repair, 7
    elseif kind == 'look' then
        arguments = 6
    elseif kind == 'revoke' then
        arguments = 3
    end
    local ok, reply = pcall(run, a + 1)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments
end
replies[2] = beat
return replies
