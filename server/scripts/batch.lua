-- Runs the calls of a batch, in their order; what is answered is
--
--   now reply...
--
-- An error of one call is its reply: the others neither see it nor repeat it.

local run = {
    look = permission, admit = permission, readmit = permission,
    revoke = permission,
    acquire = acquire, extend = extend, release = release, inspect = inspect
}
local arguments = {
    look = 2, admit = 3, readmit = 3, revoke = 2,
    acquire = 6, extend = 4, release = 3, inspect = 1
}

local replies = {now}
local a = 3
while a <= #ARGV do
    local kind = ARGV[a]
    local ok, reply = pcall(run[kind], a + 1)
    if not ok and type(reply) ~= 'table' then
        reply = {err = reply}
    end
    replies[#replies + 1] = reply
    a = a + 1 + arguments[kind]
end
return replies
