#!/usr/bin/env bash
# lock.sh RESOURCE TTL_MS WAIT_MS COMMAND…: runs a command under a lock of redlockd, for Linux;
# LIMIT=3: at most three at once; MODE=shared: as a reader. A loss kills its process group. It
# gets its fencing number in FENCE, and SLOT; LOCK_UNTIL says when to stop (/proc/uptime, ms).
set -euo pipefail
read -ra urls <<<"${URLS:?the replicas of redlockd}"
resource=$1 ttl_ms=$2 wait_ms=$3 want="ttl_ms: $2${LIMIT:+, limit: $LIMIT}${MODE:+, mode: env.MODE}"
shift 3 && head="Idempotency-Key: $(</proc/sys/kernel/random/uuid)" # the same for each repeat
bearer=${REDLOCKD_AUTH_TOKEN:+"Authorization: Bearer $REDLOCKD_AUTH_TOKEN"} # our token, if any
LOCK_UNTIL=$(mktemp)
export LOCK_UNTIL FENCE SLOT

left() { # sets left_ms, and now_ms, whose clock runs on while the machine sleeps
    read -r now_ms _ </proc/uptime
    now_ms=$((10#${now_ms/./} * 10))
    read -r left_ms <"$LOCK_UNTIL" || left_ms=0
    left_ms=$((left_ms - now_ms))
}
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }
field() { jq -r ".$1 // \"\"" <<<"$answer"; }
ask() { # method path limit-ms body: sets answer, of the first replica that has one
    for _ in "${urls[@]}"; do
        left
        sent_ms=$now_ms
        raw=$(curl -s -X "$1" "${urls[0]}$2" -m "$(seconds "$3")" --data-binary @<(echo "$4") \
            -H 'Content-Type: application/json' -H @<(printf '%s\n' "$head" "$bearer")) || raw=''
        answer=$(jq 'select((.status // 0) < 429)' <<<"$raw" 2>/dev/null) || answer=''
        if read -r lasts_ms renew_ms < <(jq -r "select(.validity_ms) |
            \"\(.elapsed_ms + .validity_ms) \(.renew_after_ms)\"" <<<"$answer"); then
            renew_at_ms=$((sent_ms + renew_ms)) # a tenth of the TTL is for ending the work:
            echo $((sent_ms + lasts_ms - ttl_ms / 10)) >"$LOCK_UNTIL.new"
            mv "$LOCK_UNTIL.new" "$LOCK_UNTIL"
        fi
        [ -z "$answer" ] || return 0
        urls=("${urls[@]:1}" "${urls[0]}")
    done
}
renew() { # until the lock is lost
    while left && [ "$left_ms" -gt 0 ]; do
        pause_ms=$((renew_at_ms < now_ms ? 0 : renew_at_ms - now_ms))
        sleep "$(seconds $((pause_ms < left_ms ? pause_ms : left_ms)))"
        kill -0 -- "-$worker" || exit 0
        if left && [ "$left_ms" -le 0 ]; then break; fi
        renew_at_ms=$((now_ms + ttl_ms / 20)) # unless this succeeds
        ask PUT "$path/extend" $((left_ms / ${#urls[@]})) "{$token,\"ttl_ms\":$ttl_ms}"
        [[ $(field code) =~ ^(lock_not_found|not_owner)$ ]] && break
    done
    echo 0 >"$LOCK_UNTIL"
    kill -KILL -- "-$worker"
}
# shellcheck disable=SC2317 # called by the trap
finish() {
    kill "$renewer" 2>/dev/null || true
    kill -KILL -- "-$worker" 2>/dev/null || true
    ask DELETE "$path" 2000 "{$token}"
    rm -f "$LOCK_UNTIL" "$LOCK_UNTIL.new"
}

left && deadline_ms=$((now_ms + wait_ms))
until slice_ms=$((deadline_ms < now_ms ? 0 : deadline_ms - now_ms)) &&
    slice_ms=$((slice_ms > 10000 ? 10000 : slice_ms)) &&
    body=$(jq -n --arg resource "$resource" "{\$resource, $want, wait_ms: $slice_ms}") &&
    ask POST /locks $((slice_ms + 2000)) "$body" && token=$(field token) && [ -n "$token" ]; do
    left
    if ! [[ $(field code) =~ ^(lock_held)?$ ]] || [ "$now_ms" -gt "$deadline_ms" ]; then
        echo "$resource: ${answer:-no answer}" >&2 && exit 75
    fi
    [ -n "$answer" ] && continue
    told_ms=$(answer=$raw field retry_after_ms 2>/dev/null) || told_ms=0
    sleep "$(seconds $((told_ms + RANDOM % 800 + 200)))"
done
path=/locks/$(field id) FENCE=$(field fencing_token) token="\"token\":\"$token\""
SLOT=$(field "slots[0]") && set -m # the command gets a process group
"$@" & worker=$! && set +m
renew >/dev/null 2>&1 & renewer=$!
trap finish EXIT && trap 'exit 143' INT TERM HUP
wait "$worker" && status=0 || status=$?
left
[ "$left_ms" -gt 0 ] || { echo "lock lost" >&2 && exit 70; }
exit "$status"
