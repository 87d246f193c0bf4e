-- SPDX-License-Identifier: MIT
-- The end of run(), which prelude.lua begins; then the script's main part for one
-- call.

end -- of run

-- Does what run() does, but an error is the reply: the other calls still run. What
-- needs no memory is not refused for want of it.
local function run_safely(kind, a, n, b, s)
    local ok, reply = pcall(run, kind, a, n, b, s)
    if not ok and is_oom(reply) and not string.find('aghp', kind, 1, true) then
        go_on_without_memory()
        ok, reply = pcall(run, kind, a, n, b, s)
    end
    return (ok or type(reply) == 'table') and reply or {err = reply}
end

-- One call, which is most batches of a few clients: even to make the functions
-- that follow would cost more than the call.
if #kinds == 1 and string.byte(kinds) >= 97 then -- of one lock
    local a = (kinds == 'a' or kinds == 'h') and 6 or 5
    local reply = run_safely(kinds, a, 1, a + 1, 5)
    if type(reply) == 'string' then
        return {now, generation, reply}
    end
    return {now, generation, '.', reply}
end

-- Where the latest acquire of one lock has its bucket and the latest release of one
-- lock its lock, which is so far before its token; where the other arguments
-- begin.
local bucket_at, lock_at, token_offset = 6, 6 + ARGV[5], ARGV[6] + 0
local arguments_at = lock_at + 2 * token_offset + 1
