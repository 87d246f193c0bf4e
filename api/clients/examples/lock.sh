#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a command under a lock of redlockd; for Linux, with curl and jq.
#
#   URLS="http://a:8080 http://b:8080" lock.sh RESOURCE TTL_MS WAIT_MS COMMAND…
#
#   LIMIT=3        as one of three at once, each with a SLOT of its own
#   MODE=shared    as a reader
#
# The command gets FENCE, its fencing token, and LOCK_UNTIL: the name of a file
# that says until when it may work, in milliseconds of /proc/uptime. When the
# lock is lost, its process group gets TERM, and KILL a tenth of the TTL later.
#
# Exit status: the command's; 70 if the lock was lost; 75 if there was none.
set -euo pipefail

read -ra urls <<<"${URLS:?the replicas of redlockd}"
if [ $# -lt 4 ] || ! [[ $2$3 =~ ^[0-9]+$ ]]; then
    echo "usage: lock.sh RESOURCE TTL_MS WAIT_MS COMMAND…" >&2
    exit 64
fi
resource=$1 ttl_ms=$2 wait_ms=$3
shift 3

# the same for each repeat; the second is our token, if redlockd wants one
key="Idempotency-Key: $(</proc/sys/kernel/random/uuid)"
bearer=${REDLOCKD_AUTH_TOKEN:+"Authorization: Bearer $REDLOCKD_AUTH_TOKEN"}

# The command's time to end. Within another lock.sh it is at most half of the
# outer one's, which else might end us before we have ended the command.
grace_ms=$((ttl_ms / 10))
outer_ms=$((${LOCK_GRACE_MS:-$ttl_ms} / 2))
LOCK_GRACE_MS=$((grace_ms < outer_ms ? grace_ms : outer_ms))
LOCK_UNTIL=$(mktemp)
trap 'rm -f "$LOCK_UNTIL"' EXIT
export LOCK_UNTIL LOCK_GRACE_MS FENCE SLOT

# ---- time --------------------------------------------------------------------

# Sets now_ms, by a clock that runs on while the machine sleeps, and left_ms, how
# long the command may work.
left() {
    read -r now_ms _ </proc/uptime
    now_ms=$((10#${now_ms/./} * 10))
    read -r left_ms <"$LOCK_UNTIL" || left_ms=0
    left_ms=$((left_ms - now_ms))
}

seconds() {
    printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# ---- redlockd ----------------------------------------------------------------

# ask METHOD PATH LIMIT_MS BODY: sets raw and answer, that of the first replica
# which has one; empty: none has. A grant says how long it lasts.
ask() {
    local granted_ms validity_ms renew_ms sent_ms
    for _ in "${urls[@]}"; do
        left
        sent_ms=$now_ms
        # files, for everybody sees the arguments of curl
        raw=$(curl -s -X "$1" "${urls[0]}$2" -m "$(seconds "$3")" \
            -H 'Content-Type: application/json' \
            -H @<(printf '%s\n' "$key" "$bearer") \
            --data-binary @<(printf '%s' "$4")) || raw=''
        answer=$(jq 'select((.status // 0) < 429)' <<<"$raw" 2>/dev/null) ||
            answer=''
        if read -r granted_ms validity_ms renew_ms < <(
            jq -r --argjson sent_ms "$sent_ms" 'select(.validity_ms) |
                "\($sent_ms + .elapsed_ms) \(.validity_ms) \(.renew_after_ms)"' \
                <<<"$answer"
        ); then
            renew_at_ms=$((granted_ms + renew_ms))
            # a tenth of the TTL is for ending the command
            echo $((granted_ms + validity_ms - ttl_ms / 10)) >"$LOCK_UNTIL.new"
            mv "$LOCK_UNTIL.new" "$LOCK_UNTIL"
        fi
        [ -z "$answer" ] || return 0
        urls=("${urls[@]:1}" "${urls[0]}")
    done
}

field() { # of the answer
    jq -r ".$1 // \"\"" <<<"$answer"
}

want() { # WAIT_MS: what to ask for
    jq -n --arg resource "$resource" --argjson ttl_ms "$ttl_ms" \
        --argjson wait_ms "$1" --argjson limit "${LIMIT:-null}" \
        '{$resource, $ttl_ms, $wait_ms, $limit, mode: env.MODE}
         | with_entries(select(.value != null and .value != ""))'
}

acquire() {
    local deadline_ms slice_ms told_ms
    left
    deadline_ms=$((now_ms + wait_ms))
    while :; do
        slice_ms=$((deadline_ms < now_ms ? 0 : deadline_ms - now_ms))
        slice_ms=$((slice_ms > 10000 ? 10000 : slice_ms))
        ask POST /locks $((slice_ms + 2000)) "$(want "$slice_ms")"
        token=$(field token)
        [ -z "$token" ] || return 0
        left
        if ! [[ $(field code) =~ ^(lock_held)?$ ]] ||
            [ "$now_ms" -gt "$deadline_ms" ]; then
            echo "$resource: ${answer:-no answer}" >&2
            exit 75
        fi
        [ -z "$answer" ] || continue # it has waited for us
        told_ms=$(answer=$raw field retry_after_ms 2>/dev/null) || told_ms=0
        sleep "$(seconds $((told_ms + RANDOM % 800 + 200)))"
        left
    done
}

# ---- the command -------------------------------------------------------------

# To its process group: TERM, and KILL to who is left when its time is over.
end_command() { # GRACE_MS
    local until_ms
    kill -TERM -- "-$command" || return 0
    left
    until_ms=$((now_ms + $1))
    while [ "$now_ms" -lt "$until_ms" ] && kill -0 -- "-$command"; do
        sleep 0.02
        left
    done
    kill -KILL -- "-$command" || true
} 2>/dev/null

renew() { # until the lock is lost
    local pause_ms
    while left && [ "$left_ms" -gt 0 ]; do
        pause_ms=$((renew_at_ms < now_ms ? 0 : renew_at_ms - now_ms))
        sleep "$(seconds $((pause_ms < left_ms ? pause_ms : left_ms)))"
        kill -0 -- "-$command" || return 0 # it has ended
        left
        [ "$left_ms" -gt 0 ] || break
        renew_at_ms=$((now_ms + ttl_ms / 20)) # unless this succeeds
        ask PUT "$path/extend" $((left_ms / ${#urls[@]})) \
            "{$token,\"ttl_ms\":$ttl_ms}"
        ! [[ $(field code) =~ ^(lock_not_found|not_owner)$ ]] || break
    done
    echo 0 >"$LOCK_UNTIL"
    end_command "$LOCK_GRACE_MS"
}

# shellcheck disable=SC2317 # called by the trap
finish() {
    trap '' INT TERM HUP # the command must not outlive us
    kill "$renewer" 2>/dev/null || true
    left
    # a lock that is lost leaves no time
    end_command $((left_ms > 0 ? LOCK_GRACE_MS : 0))
    ask DELETE "$path" 2000 "{$token}"
    rm -f "$LOCK_UNTIL" "$LOCK_UNTIL.new"
}

acquire
path=/locks/$(field id) FENCE=$(field fencing_token) SLOT=$(field 'slots[0]')
token="\"token\":\"$token\""

set -m # a process group of its own
"$@" &
command=$!
set +m
renew >/dev/null 2>&1 &
renewer=$!
trap finish EXIT
trap 'exit 143' INT TERM HUP

wait "$command" && status=0 || status=$?
left
if [ "$left_ms" -le 0 ]; then
    echo "lock lost" >&2
    status=70
fi
exit "$status"
