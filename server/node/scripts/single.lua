-- The end of run(), which prelude.lua begins; then the script's main part for one
-- call.

end -- of run

-- One call, which is most batches of a few clients: even to make the functions
-- that follow would cost more than the call.
if #kinds == 1 and string.byte(kinds) >= 97 then -- of one lock
    local a = (kinds == 'a' or kinds == 'h') and 6 or 5
    local ok, reply = pcall(run, kinds, a, 1, a + 1, 5)
    if ok and type(reply) == 'string' then
        return {now, beat, reply}
    end
    return {now, beat, '.', type(reply) == 'table' and reply or {err = reply}}
end

-- Where the latest acquire of one lock has its slot and the latest release of one
-- lock its lock, which is so far before its token; where the other arguments
-- begin.
local slot_at, lock_at, token_offset = 6, 6 + ARGV[5], ARGV[6] + 0
local arguments_at = lock_at + 2 * token_offset + 1
