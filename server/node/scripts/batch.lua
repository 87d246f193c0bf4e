-- SPDX-License-Identifier: MIT
-- The script's main part for several calls: after single.lua, which returns for
-- one.
--
-- Runs the calls of the batch in order; the reply is
--
--   now generation letters detail...
--
-- generation  of the node, if a call promised something or found it admitted;
--             otherwise 0
-- letters     the answer to each call; ".": the next detail is

local answers, count, has_details = {}, 0, false
local at, a = 1, arguments_at -- the next letter, its first argument

-- A row writes first what needs memory. Otherwise a new lock would be set above
-- maxmemory if something else comes before it, and a probe would not see that.
if not string.find(kinds, '^[ar][ar][ar]+$') and
    string.find(kinds, '[^a].*[aghpkAGHP]') then
    is_memory_short()
end

while at <= #kinds do
    local _, last = string.find(kinds, '^[ahr][ahr][ahr]+', at)
    local calls = not last and string.find(kinds, '^[hr];[hr]', at) and
        next_readers(at, a)
    local is_more
    if last then
        local row = {string.byte(kinds, at, last)}
        a, is_more = run_row(row, answers, count, a)
        has_details = has_details or is_more
        count = count + #row
        at = last + 1
    elseif calls and calls[1] then
        a, is_more = run_readers(calls, answers, count, a)
        has_details = has_details or is_more
        count = count + #calls
        at = at + 2 * #calls - 1
    elseif string.sub(kinds, at, at) == ';' then
        at = at + 1
    else
        local letter = string.sub(kinds, at, at)
        local kind, n, arguments = string.lower(letter), 1
        if kind ~= letter then -- of several locks
            n = tonumber(ARGV[a])
            a = a + 1
        end
        local lock, others = a, a + n
        if letter == 'a' or letter == 'h' then
            bucket_at = bucket_at + 1
            arguments = letter == 'h' and 4 or 3
        elseif letter == 'r' then
            lock_at = lock_at + 1
            lock, others = lock_at, lock_at + token_offset
            arguments = 0
        elseif kind == 'a' or kind == 'e' then
            arguments = 2 + 2 * n
        elseif kind == 'h' then
            arguments = 3 + 2 * n
        elseif kind == 'g' or kind == 'p' then
            arguments = 4 + 2 * n
        elseif kind == 'r' or kind == 't' then
            arguments = 1 + n
        elseif kind == 'x' then
            arguments = 2 + n
        elseif kind == 'i' or kind == 'l' then
            arguments = n
        elseif kind == 'k' then
            arguments = 11
        elseif kind == 'v' or kind == 's' or kind == 'f' then
            arguments = 3
        elseif kind == 'm' then
            arguments = 8
        else -- n
            arguments = 7
        end
        local reply = run_safely(kind, lock, n, others, bucket_at)
        count = count + 1
        answers[count] = reply
        has_details = has_details or type(reply) == 'table'
        a = a + arguments
        at = at + 1
    end
end

if has_details then
    local details = {}
    for i = 1, count do
        if type(answers[i]) == 'table' then
            details[#details + 1] = answers[i]
            answers[i] = '.'
        end
    end
    return {now, generation, table.concat(answers), unpack(details)}
end
return {now, generation, table.concat(answers)}
