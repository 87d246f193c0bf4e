#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each command of redlockctl on a real stack: what it prints, how it exits:
#   commands.sh [TEST…]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh

ctl=${REDLOCKCTL:-build/redlockctl}
dead=http://127.0.0.1:1 # nobody listens there
said=''                 # what the last command wrote, to stdout and stderr
status=0

# Runs redlockctl; gives up after 30 s. It has no terminal.
ask() { # argument…
    status=0
    said=$(timeout 30 "$ctl" "$@" 2>&1 </dev/null) || status=$?
}

# ask, which must end with this status and print this text.
gives() { # status text argument…
    local want=$1 text=$2
    shift 2
    ask "$@"
    [ "$status" -eq "$want" ] && [[ $said == *"$text"* ]] && return
    echo "redlockctl $*: status $status, not $want, or it lacks \"$text\":"
    echo "$said"
    return 1
}

hold() { # resource ttl option…
    "$ctl" acquire "$1" -n -t "$2" "${@:3}" >/dev/null
}

# The fencing token of the holder, as show prints it.
fence() { # resource
    "$ctl" show "$1" --json | sed 's/.*"fencing_token":\([0-9]*\).*/\1/'
}

command_line_is_checked() {
    gives 64 "no command given" &&
        gives 64 "no such command" lock a &&
        gives 64 "add -- and a command" run a &&
        gives 64 "add -- and a command" run a -- &&
        gives 64 "a resource is missing" run -- true &&
        gives 64 "no such option" run --json a -- true &&
        gives 64 "needs a value" run -w -- true &&
        gives 64 "is not a time" run -w soon a -- true &&
        gives 64 "is not a time" run -w 5x a -- true &&
        gives 64 "is not a time" run -t 0.01 a -- true &&
        gives 64 "is not a time" run -t 1.2.3 a -- true &&
        gives 64 "is not a whole number" run -E 256 a -- true &&
        gives 64 "more than half of the TTL" run -t 4 --grace 2.1 a -- true &&
        gives 64 "is not a URL" run --url localhost:8080 a -- true &&
        gives 64 "control characters" run $'a\nb' -- true &&
        gives 64 "control characters" run $'a\xc2\x9bm' -- true &&
        gives 64 '"a\uFFFDb": a resource must be valid UTF-8' run $'a\xffb' -- true &&
        gives 64 "16 resources at most" run {1..17} -- true &&
        gives 64 "no lock token" release a &&
        gives 64 "needs --limit" run --permits 2 a -- true &&
        gives 64 "more than --limit" run --limit 2 --permits 3 a -- true &&
        gives 64 "needs one resource" run --limit 2 a b -- true &&
        gives 64 "is not a whole number" run --limit 0 a -- true &&
        gives 64 "is not a whole number" acquire --limit 1001 a &&
        gives 64 "a permit has one holder" run -s --limit 2 a -- true &&
        gives 0 "redlockctl run: " run --help &&
        gives 0 "Commands:" --help &&
        gives 0 "redlockctl $(cat VERSION)" --version
}

# Each example of --help, on a service with default limits; the manual page must
# have it, too. The programs that the examples run are stubs.
examples_of_help_work() {
    local name line count=0 number page
    mkdir -p "$stack_dir/bin"
    for name in bin/pg_dump deploy.sh transfer export; do
        printf '#!/bin/sh\necho ran\n' >"$stack_dir/$name"
        chmod +x "$stack_dir/$name"
    done
    ln -sf "$(realpath "$ctl")" "$stack_dir/bin/redlockctl"
    page=$(scripts/manual.py "$(dirname "$ctl")" redlockctl.1 | sed 's/\\-/-/g')
    while read -r line; do
        hold order:42 20
        number=$(fence order:42)
        line_works "${line/179*[0-9] /$number }" || return
        [[ $page == *$'\n'"$line"$'\n'* ]] || {
            echo "redlockctl(1) lacks: $line"
            return 1
        }
        "$ctl" release order:42 --force "$number" 2>/dev/null || true
        count=$((count + 1))
    done < <(for name in $("$ctl" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        "$ctl" "$name" --help | sed '1,/^Examples*:/d'
    done)
    [ "$count" -ge 5 ]
}

line_works() { # line
    (cd "$stack_dir" && PATH=$PWD/bin:$PATH timeout 30 bash -euc "$1") && return
    echo "exits with $?: $1"
    return 1
}

times_of_help_work() {
    local time
    for time in $("$ctl" run --help | sed -n 's/^A TIME.*: \(.*\)[.]$/\1/p' |
        tr -d ,); do
        gives 0 "" run -w "$time" times -- true || return
        [ "$time" = 1h ] && return # the last one
    done
    return 1
}

# Except those for systemd, and for nodes that are not here.
examples_of_the_daemons_page_work() {
    local line count=0
    while read -r line; do
        line="$(dirname "$ctl")/redlockd${line##*redlockd} --check-config"
        REDLOCKD_NODES=127.0.0.1:1 bash -euc "$line" || return
        count=$((count + 1))
    done < <(sed -n '/^.SH EXAMPLES/,/^.SH SEE/{/^.RS/{n;s/\\-/-/g;p}}' docs/man/redlockd.8)
    [ "$count" -eq 2 ]
}

options_behind_dashes_are_the_commands() {
    gives 0 "-w 5 --help" run c1 -- echo -w 5 --help &&
        gives 0 "a -- b" run c2 -n -- echo a -- b
}

command_is_told_of_its_lock() {
    # shellcheck disable=SC2016 # for the shell that redlockctl starts
    gives 0 "[e1][${EPOCHREALTIME:0:1}][${EPOCHREALTIME:0:1}" run e1 -- sh -c '
        echo "[$REDLOCKD_RESOURCE][$(echo "$REDLOCKD_FENCING_TOKEN" |
            cut -c1)][$REDLOCKD_TOKEN]"' &&
        gives 0 $'[a\nb/c]' run b/c a -- sh -c 'echo "[$REDLOCKD_RESOURCE]"'
}

exit_status_is_the_commands() {
    gives 0 "" run s1 -- true &&
        gives 7 "" run s1 -- sh -c 'exit 7' &&
        gives 137 "" run s1 -- sh -c 'kill -KILL $$' &&
        gives 127 "No such file" run s1 -- /nowhere/command &&
        gives 126 "Permission denied" run s1 -- /etc/passwd
}

lock_is_free_afterwards() {
    gives 0 "" run f1 -n -- true && gives 1 "f1: free" show f1
}

held_lock_is_not_acquired() {
    hold h1 20 --owner web-3 &&
        gives 1 "h1: somebody else (web-3) holds the lock" run -n h1 -- true &&
        gives 9 "gave up after 0.3 s" run -w 300ms -E 9 h1 -- true &&
        gives 1 "holds the lock" acquire -n h1
}

waits_for_the_lock() {
    hold w1 1 && gives 0 "mine" run -w 20 w1 -- echo mine
}

command_may_run_longer_than_the_ttl() {
    gives 0 "1" run -t 2 l1 -- sh -c "sleep 4.5; $ctl show l1 --json |
        grep -c remaining_ms"
}

signals_reach_the_command() {
    local pid status=0
    "$ctl" run g1 -- sh -c \
        'trap "echo got it; exit 5" USR1; echo ready; while :; do sleep 0.05; done' \
        >"$stack_dir/g1" </dev/null &
    pid=$!
    eventually 10 grep -q ready "$stack_dir/g1"
    kill -USR1 "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 5 ] && grep -q "got it" "$stack_dir/g1"
}

signal_ends_the_wait() {
    local pid status=0
    hold g2 20
    "$ctl" run g2 -- true 2>/dev/null &
    pid=$!
    eventually 10 has_waiter g2
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 143 ] && ! has_waiter g2
}

killed_wait_leaves_nothing() {
    local pid guard
    hold g3 20
    "$ctl" run g3 -- true 2>/dev/null &
    pid=$!
    eventually 10 has_waiter g3
    guard=$(pgrep -P "$pid")
    kill -KILL "$pid"
    wait "$pid" || true
    eventually 10 is_gone "$guard" && ! has_waiter g3
}

is_gone() { # pid; a zombie whose parent does not look counts, too
    ! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null
}

has_waiter() { # resource
    "$ctl" show "$1" --json | grep -q '"waiters":1'
}

ignored_signals_stay_ignored() {
    gives 3 "" run i1 -- sh -c "trap '' HUP; $ctl run i2 -- sh -c 'kill -HUP \$\$; exit 3'"
}

leftovers_end_before_the_release() {
    gives 0 "" run o1 --grace 0.2 -- sh -c 'sleep 987.1 & true' &&
        gives 0 "" run o1 --grace 0.2 -- \
            sh -c '(trap "" TERM; exec sleep 987.2) & true' &&
        ! pgrep -f 'sleep 987[.]'
}

replica_that_is_dead_is_passed_over() {
    gives 0 "hi" run --url $dead --url "$REDLOCKD_URL" r1 -- echo hi &&
        REDLOCKD_URL="$dead, $REDLOCKD_URL/" gives 0 "hi" run r1 -- echo hi &&
        gives 75 "$dead: " run -n --url $dead r1 -- echo hi &&
        gives 75 "gave up after 0.5 s" run -w 0.5 --url $dead r1 -- echo hi &&
        gives 75 "$dead: " show --url $dead r1
}

trouble_is_told_once() {
    gives 75 "still trying: $dead: " run -w 8 --url $dead r2 -- true &&
        [ "$(grep -c "still trying" <<<"$said")" -eq 1 ]
}

# Nothing listens at the proxies' address.
proxies_are_not_asked_for_this_machine() {
    local variable
    for variable in http_proxy all_proxy ALL_PROXY; do
        (
            export "$variable=$dead"
            gives 0 "5 of 5" nodes &&
                gives 0 "5 of 5" nodes --url "${REDLOCKD_URL/127.0.0.1/localhost}"
        ) || return
    done
}

passwords_in_urls_are_not_shown() {
    gives 75 "http://127.0.0.1:1: " nodes --url "http://me:secret@127.0.0.1:1" &&
        [[ $said != *secret* ]] &&
        gives 64 "is not a URL" nodes --url "me:secret@127.0.0.1:1" &&
        [[ $said != *secret* ]]
}

urls_have_no_query_and_it_is_not_shown() {
    local url
    for url in "$REDLOCKD_URL/?token=secret" "$REDLOCKD_URL#secret" \
        "me:secret@127.0.0.1:1?secret" "127.0.0.1:1/?a=1,secret"; do
        gives 64 "must not contain ? or #" nodes --url "$url" || return
        [[ $said != *secret* ]] || return
    done
}

service_that_refuses_is_not_asked_again() {
    gives 64 "ttl_ms is" run -t 10h x1 -- true
}

acquire_extend_release() {
    # shellcheck disable=SC2016 # for the shell
    local round='eval "$("$0" acquire -n -t 1 "$@")" && "$0" extend -t 30 &&
        "$0" show "$@" && "$0" release && ! "$0" extend'
    bash -c "$round" "$ctl" q1 &&
        bash -c "$round" "$ctl" "it's" 'a b' &&
        gives 0 '"token":"' acquire --json q2 &&
        gives 70 "no such lock" release q3 \
            --token "$(grep -o '[0-9]*[.][0-9a-f]\{40\}[^"]*' <<<"$said")" &&
        gives 64 "token" release q3 --token nonsense
}

# The server allows at most 60 s per hold.
lock_is_not_kept_for_ever() {
    (
        eval "$("$ctl" acquire -n -t 20 u1)"
        gives 1 "redlockctl: u1: " extend -t 60 && gives 0 "u1: held" show u1
    )
}

# With the number that show prints, and no other.
release_by_force() {
    local number
    hold z1 20 --owner gone
    number=$(fence z1)
    gives 70 "another fencing token" release --force $((number - 1)) z1 &&
        gives 0 "held by gone" show z1 &&
        gives 0 "" release --force "$number" z1 &&
        gives 1 "z1: free" show z1 &&
        gives 70 "no such lock" release --force "$number" z1
}

# All at once, but no writer.
release_all_readers_by_force() {
    hold z2 20 -s && hold z2 20 -s &&
        gives 0 "" release --force all z2 &&
        hold z2 20 &&
        gives 70 "a writer holds the lock" release --force all z2 &&
        gives 0 "held by" show z2 && release_what_is_held z2 &&
        gives 70 "no such lock" release --force all z2 &&
        gives 64 "is neither a fencing token nor all" release --force both z2
}

release_what_is_held() { # resource
    eventually 10 gives 0 "held by" show "$1"
    "$ctl" release "$1" --force "$(fence "$1")"
}

# At the next renewal, after 7 s, not at the end of the validity, after 20.
lost_lock_ends_the_command_at_once() {
    local begun=$SECONDS
    release_what_is_held l1 &
    gives 70 "the lock is lost" run -t 21 --grace 0.2 --owner me l1 -- sleep 60 &&
        wait $! && [ $((SECONDS - begun)) -lt 17 ]
}

show_tells_the_holder() {
    hold t1 20 --owner cron-1 &&
        gives 0 "t1: held by cron-1, fencing token " show t1 &&
        gives 0 '"owner":"cron-1"' show t1 --json &&
        gives 1 "t2: free" show t2
}

# The lock of both would show only the first holder.
several_have_each_their_holder() {
    hold k1 20 --owner ann && gives 0 "k1: held by ann" show k1 k2 &&
        [[ $said == *$'\nk2: free' ]] && gives 1 $'k3: free\nk2: free' show k3 k2 &&
        gives 0 '"resource":"k1"' show k2 k1 --json && [ "$(wc -l <<<"$said")" -eq 2 ]
}

# Shown from right to left, the end of the name would come first.
names_do_not_move_the_terminal() {
    local name=$'hidden\xe2\x80\xaegnp.exe\xe2\x80\xa8'
    hold "$name" 20 && gives 0 'hidden\u202Egnp.exe\u2028: held' show "$name" &&
        gives 0 'hidden\u202Egnp.exe\u2028: held' list --prefix hidden &&
        gives 1 'hidden\u202Egnp.exe\u2028: ' run -n "$name" -- true &&
        gives 0 $'\xe2\x80\xae' list --json --prefix hidden
}

# One server, which may be the one with the same environment.
server_is_probed() {
    local host=${REDLOCKD_URL#http://}
    gives 0 "" ready && [ -z "$said" ] &&
        gives 1 "$dead: " ready --url $dead &&
        gives 64 "checks one server, not 2" ready --url $dead --url $dead &&
        REDLOCKD_URL=$dead REDLOCKD_LISTEN=$host gives 0 "" ready &&
        REDLOCKD_LISTEN=0.0.0.0:${host#*:} gives 0 "" ready &&
        REDLOCKD_LISTEN=$host gives 1 "$dead: " ready --url $dead &&
        REDLOCKD_LISTEN=127.0.0.1:1 gives 1 "$dead: " ready
}

nodes_are_listed() {
    gives 0 "5 of 5 nodes vote" nodes && gives 0 '"voting":5' nodes --json &&
        gives 0 "${stack_nodes[0]} " nodes
}

# The command gets the terminal, and Ctrl-Z does not leave it stopped.
terminal_is_the_commands() {
    local seen=$stack_dir/seen out=$stack_dir/terminal
    : >"$seen"
    # shellcheck disable=SC2016 # for the shell that redlockctl starts
    type_slowly "$seen" | timeout 25 script -qec "$ctl run y1 -- sh -c '
        echo begun >>$seen; read a; echo read >>$seen; read b
        echo \"[\$a \$b]\"'" /dev/null >"$out" 2>&1
    grep -q '\[word more\]' "$out"
}

type_slowly() { # file in which the command tells how far it is
    eventually 10 grep -q begun "$1" && echo word &&
        eventually 10 grep -q read "$1" && printf '\032' &&
        sleep 0.5 && echo more && sleep 0.5
}

# The command finds its slot; show tells of all.
permits_are_locks_of_slots() {
    # shellcheck disable=SC2016 # for the shell that redlockctl starts
    gives 0 "p1 0" run --limit 1 p1 -- \
        sh -c 'echo "$REDLOCKD_RESOURCE $REDLOCKD_SLOT"' &&
        gives 0 "0 1 2" run --limit 3 --permits 3 p1 -- \
            sh -c 'echo "$REDLOCKD_SLOT"' &&
        REDLOCKD_SLOT=7 gives 0 "slot: none" run no-permit -- \
            sh -c 'echo "slot: ${REDLOCKD_SLOT-none}"' &&
        gives 1 "p1: 3 of 3 free" show --limit 3 p1 &&
        hold p1 20 --limit 2 --owner me &&
        gives 0 "held by me" show --limit 2 p1 &&
        gives 0 "p1, slot " show --limit 2 p1 &&
        gives 0 "p1: 1 of 2 free" show --limit 2 p1 &&
        hold p1 20 --limit 2 &&
        gives 1 "not enough permits of this pool" run -n --limit 2 p1 -- true &&
        gives 0 '"free":[2]' show --json --limit 3 p1
}

# Also by extend and release, which read what acquire has printed.
permits_are_extended_and_released() (
    eval "$("$ctl" acquire -n --limit 1 p2)" &&
        [ "$REDLOCKD_RESOURCE $REDLOCKD_SLOT" = 'p2 0' ] &&
        gives 0 "p2, slot 0: held by" list --prefix p2 &&
        gives 70 "" extend p2 && gives 0 "yours for" extend &&
        gives 0 "yours for" extend --slot 0 p2 &&
        gives 70 "" release --slot 1 p2 && gives 0 "" release &&
        gives 1 "p2: 1 of 1 free" show --limit 1 p2
)

# Or by their slots, and several together.
permits_are_named_by_their_slots() (
    eval "$("$ctl" acquire -n --limit 11 --permits 11 p4)" &&
        [ "$REDLOCKD_SLOT" = '0 1 2 3 4 5 6 7 8 9 10' ] &&
        gives 0 "yours for" extend && gives 0 "" release &&
        gives 64 "is not a number from 0 to 999" release --slot 1000 p4 &&
        gives 64 "is not a number from 0 to 999" release --slot "1 x" p4 &&
        gives 64 "needs one resource, not 2" release --slot 0 p4 p5 &&
        gives 64 "at most 251 characters" release --slot 0 "$(printf %0252d 0)" &&
        eval "$("$ctl" acquire -n p4)" && [ -z "$REDLOCKD_SLOT" ] &&
        gives 0 "" release
)

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

# In a subshell, at whose end it ends.
watches() { # resource…; it writes to a file with the name of the first
    "$ctl" watch "$@" >"$stack_dir/$1" &
    # shellcheck disable=SC2064 # this one
    trap "kill $!" EXIT
}

watch_tells_changes() (
    watches v1
    eventually 10 grep -q "v1: free" "$stack_dir/v1" &&
        hold v1 2 --owner one &&
        eventually 10 grep -q "v1: held by one" "$stack_dir/v1" &&
        eventually 10 has_lines 3 "$stack_dir/v1"
)

watch_tells_of_each() (
    hold v2 20 --owner two
    watches v2 v3
    eventually 10 grep -q " v3: free" "$stack_dir/v2" &&
        grep -q " v2: held by two" "$stack_dir/v2" &&
        hold v3 20 --owner three &&
        eventually 10 grep -q " v3: held by three" "$stack_dir/v2" &&
        has_lines 3 "$stack_dir/v2"
)

# Each holds it for less than a second.
watch_tells_of_short_holders() (
    watches v4 v5
    eventually 10 grep -q " v5: free" "$stack_dir/v4" || return
    for name in one two three four; do
        hold v4 0.6 --owner "$name" && hold v5 0.6 --owner "$name" &&
            eventually 10 gives 1 free show v4 v5 || return
    done
    for name in one two three four; do
        eventually 10 grep -q " v4: held by $name" "$stack_dir/v4" &&
            eventually 10 grep -q " v5: held by $name" "$stack_dir/v4" || return
    done
)

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

has_lines() { # count file
    [ "$(wc -l <"$2")" -eq "$1" ]
}

full_disk_is_told() {
    ! "$ctl" nodes >/dev/full
}

stack_begin
checks_begin stack_end
port=8580
while stack_is_taken "$port"; do port=$((port + 1)); done
stack_start_nodes 5 7901 --appendonly yes --appendfsync always
stack_start_server "${REDLOCKD:-build/redlockd}" "127.0.0.1:$port" \
    --log-level error --drain-ms 0 --max-hold-ms 60000
export REDLOCKD_URL=http://127.0.0.1:$port
unset REDLOCKD_RESOURCE REDLOCKD_TOKEN
check_or_end "a quorum votes" eventually 20 gives 0 "5 of 5" nodes
mapfile -t tests < <(declare -F | sed 's/declare -f //' | grep _ |
    grep -vE '^(stack|checks?|has|is|line|type|release_what)_')
for name in "${@:-${tests[@]}}"; do
    check "${name//_/ }" "$name"
done
