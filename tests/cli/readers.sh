# shellcheck shell=bash
# shellcheck disable=SC2154 # what commands.sh sets
# To be sourced by commands.sh, which runs each function: shared locks.

# A node may have a reader a moment later than the others.
readers_hold_together() {
    hold sh1 20 -s && gives 0 "in" run -n --shared sh1 -- echo in &&
        gives 0 "sh1: held by 1 reader, for " show sh1 &&
        gives 0 '"mode":"shared","readers":1' show sh1 --json &&
        hold sh1 20 -s &&
        eventually 10 gives 0 "sh1: held by 2 readers, for " show sh1 &&
        gives 0 "sh1: held by 2 readers, for " list --prefix sh1 &&
        gives 1 "sh1: 2 readers hold the lock" acquire -n sh1 &&
        gives 1 "sh1: 2 readers hold the lock, and others wait for it" run -ns sh1 -- true
}

writer_keeps_readers_out() {
    hold sh2 20 --owner me && gives 1 "(me) holds the lock" run -ns sh2 -- true
}

# The second reader, too, which comes while a writer waits.
reader_does_not_overtake_a_writer() {
    local pid
    hold sh3 20 -s
    "$ctl" run sh3 -- true 2>/dev/null &
    pid=$!
    eventually 10 has_waiter sh3 &&
        gives 1 "1 reader holds the lock, and others wait for it" acquire -ns sh3
    local result=$?
    kill "$pid"
    wait "$pid" || true
    return "$result"
}

command_may_read_for_longer_than_the_ttl() {
    gives 0 '"readers":1' run -s -t 2 sh4 -- sh -c "sleep 4.5; $ctl show sh4 --json"
}

# With the token that it prints; the old one is the holder's no more.
downgrade_prints_the_new_token() (
    eval "$("$ctl" acquire -n "it's" sh5)"
    old=$REDLOCKD_TOKEN number=$REDLOCKD_FENCING_TOKEN
    said=$("$ctl" extend -s -t 20) && eval "$said" && [ "$REDLOCKD_TOKEN" != "$old" ] &&
        [ "$REDLOCKD_RESOURCE $REDLOCKD_FENCING_TOKEN" = $'it\'s\nsh5 '"$number" ] &&
        hold sh5 20 -s && eventually 10 gives 0 "sh5: held by 2 readers" show sh5 &&
        gives 70 "another lock token" extend --token "$old" &&
        gives 0 "yours for" extend && gives 0 "" release &&
        eventually 10 gives 0 "sh5: held by 1 reader" show sh5 && gives 70 "" release
)

# For a shell that did not get the answer, and for one whose lock is shared.
downgrade_can_be_repeated() (
    eval "$("$ctl" acquire -n sh6)"
    "$ctl" extend --shared >/dev/null && gives 0 '"mode":"shared"' extend --shared --json &&
        eval "$("$ctl" extend -s)" && eval "$("$ctl" extend -s)" && gives 0 "" release &&
        gives 1 "sh6: free" show sh6
)

# When the first one comes and the last one has left.
watch_tells_of_readers() {
    local pid result=0
    "$ctl" watch sh7 >"$stack_dir/sh7" &
    pid=$!
    eventually 10 grep -q " sh7: free" "$stack_dir/sh7" && hold sh7 20 -s &&
        eventually 10 grep -q " sh7: held by 1 reader$" "$stack_dir/sh7" && hold sh7 20 -s &&
        gives 0 "sh7: held by 2 readers" show sh7 &&
        gives 0 "" release sh7 --force all &&
        eventually 10 has_lines 3 "$stack_dir/sh7" &&
        grep -c " sh7: free" "$stack_dir/sh7" | grep -qx 2 || result=1
    kill "$pid"
    wait "$pid" || true
    return "$result"
}
