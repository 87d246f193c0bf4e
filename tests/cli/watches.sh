# shellcheck shell=bash
# shellcheck disable=SC2154 # what commands.sh sets
# To be sourced by commands.sh, which runs each function: redlockctl watch.

watch_tells_changes() {
    local pid
    "$ctl" watch v1 >"$stack_dir/v1" &
    pid=$!
    eventually 10 grep -q "v1: free" "$stack_dir/v1" &&
        hold v1 2 --owner one &&
        eventually 10 grep -q "v1: held by one" "$stack_dir/v1" &&
        eventually 10 test "$(grep -c free "$stack_dir/v1")" -eq 1 &&
        eventually 10 has_lines 3 "$stack_dir/v1"
    local result=$?
    kill "$pid"
    wait "$pid" || true
    return "$result"
}

watch_tells_of_each() {
    local pid result=0
    hold v2 20 --owner two
    "$ctl" watch v2 v3 >"$stack_dir/v2" &
    pid=$!
    eventually 10 grep -q " v3: free" "$stack_dir/v2" &&
        grep -q " v2: held by two" "$stack_dir/v2" &&
        hold v3 20 --owner three &&
        eventually 10 grep -q " v3: held by three" "$stack_dir/v2" &&
        has_lines 3 "$stack_dir/v2" || result=1
    kill "$pid"
    wait "$pid" || true
    return "$result"
}

# Each holds it for less than a second.
watch_tells_of_short_holders() {
    local pid n result=0
    "$ctl" watch v4 v5 >"$stack_dir/v4" &
    pid=$!
    eventually 10 grep -q " v5: free" "$stack_dir/v4" || result=1
    for n in one two three four; do
        hold v4 0.6 --owner "$n" && hold v5 0.6 --owner "$n" || result=1
        eventually 10 gives 1 free show v4 v5 || result=1
    done
    for n in one two three four; do
        eventually 10 grep -q " v4: held by $n" "$stack_dir/v4" &&
            eventually 10 grep -q " v5: held by $n" "$stack_dir/v4" || result=1
    done
    kill "$pid"
    wait "$pid" || true
    [ "$result" -eq 0 ] || cat "$stack_dir/v4"
    return "$result"
}

# Nothing of it is left behind when it is killed.
watch_leaves_no_process() {
    local pid children
    "$ctl" watch v6 v7 >"$stack_dir/v6" &
    pid=$!
    eventually 10 has_children "$pid" || return
    children=$(cat "/proc/$pid/task/$pid/children")
    kill -KILL "$pid"
    wait "$pid" || true
    for pid in $children; do
        eventually 10 is_gone "$pid" || return
    done
}

has_children() { # pid
    [ "$(wc -w <"/proc/$1/task/$1/children")" -eq 2 ]
}

is_gone() { # pid
    ! kill -0 "$1" 2>/dev/null
}

has_lines() { # count file
    [ "$(wc -l <"$2")" -eq "$1" ]
}
