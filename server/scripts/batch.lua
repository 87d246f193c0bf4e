-- Runs the calls of a batch, in their order; what is answered is
--
--   now beat reply...
--
-- beat: of the node, if a call promised something or found it admitted; else 0.
-- An error of one call is its reply: the others neither see it nor repeat it.

local run = {
    look = permission, admit = permission, readmit = permission,
    revoke = permission,
    acquire = acquire, extend = extend, repair = repair,
    release = release, inspect = inspect
}
local arguments = {
    look = 6, admit = 4, readmit = 4, revoke = 3,
    acquire = 6, extend = 5, repair = 7, release = 3, inspect = 1
}

local replies = {now, 0}
local a = 4
while a <= #ARGV do
    local kind = ARGV[a]
    local ok, reply = pcall(run[kind], a + 1)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments[kind]
end
replies[2] = beat
return replies
