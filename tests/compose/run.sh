#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docker-compose.yml for real, in a project of its own: five Redis and two
# redlockd, stopped, paused, replaced and started again.
# COMPOSE="docker compose" says which of two installed versions to take. VALKEY=1
# runs Valkey in place of Redis.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/compose/stack.sh
source tests/compose/stack.sh

check_image() {
    check "the compose file draws no warning" config_is_silent
    check_or_end "the image builds" build
    check "our own layers are smaller than 2 MB" layers_are_small
    check "its user is a number, and not root" \
        image_says '{{.Config.User}}' 65532:65532
    check "its label has the version" image_says \
        '{{index .Config.Labels "org.opencontainers.image.version"}}' \
        "$(cat VERSION)"
    check "so has the binary" binary_has_version
    check "our licence is beside those of Debian's packages" has_our_licence
}

config_is_silent() {
    local said
    said=$(compose config 2>&1 >/dev/null)
    echo "$said"
    [ -z "$said" ]
}

build() {
    local proxy
    proxy=$(debian_proxy)
    compose build ${proxy:+--build-arg "http_proxy=$proxy"}
}

layers_are_small() { # those that came after the packages
    docker history --human=false --format '{{.Size}} {{.CreatedBy}}' \
        "$REDLOCKD_IMAGE" | tee /dev/stderr | awk '
        /apt-get/ {is_below = 1}
        !is_below {sum += $1}
        END {exit !(is_below && sum > 10000 && sum < 2000000)}'
}

image_says() { # format value
    [ "$(docker image inspect -f "$1" "$REDLOCKD_IMAGE" | tee /dev/stderr)" = "$2" ]
}

binary_has_version() {
    docker run --rm --read-only --cap-drop ALL --network none \
        "$REDLOCKD_IMAGE" --version | tee /dev/stderr | grep -qF "$(cat VERSION)"
}

has_our_licence() {
    docker run --rm --network none --entrypoint cat "$REDLOCKD_IMAGE" \
        /usr/share/doc/redlockd/copyright /usr/share/doc/libmicrohttpd12t64/copyright \
        >"$dir/licences" && head -n "$(wc -l <LICENSE)" "$dir/licences" | cmp - LICENSE
}

check_start() {
    check_or_end "up starts it" compose up -d
    check_or_end "it turns healthy" eventually 30 has_health healthy
    check "its nodes were healthy before it started" saw_no_node_down
    check "only redlockd publishes a port, on loopback" publishes_one_port
    check "nothing of it is root or can become it, or writes its root" \
        each_container is_hardened
    check "the nodes are durable and evict nothing" each_node is_durable
    check "the nodes are of the image that was chosen" each_node is_of_image
    check "the docs' commands print what they show" \
        tests/readme/run.sh "$(address 1)"
}

saw_no_node_down() {
    local said
    said=$(docker logs "$(container redlockd)" 2>&1)
    echo "$said"
    [[ $said == *event=quorum* ]] && [[ $said != *state=unreachable* ]]
}

publishes_one_port() {
    local ports
    ports=$(each_container docker port)
    echo "$ports"
    [ "$(wc -l <<<"$ports")" -eq 1 ] &&
        [[ $ports == "8080/tcp -> 127.0.0.1:"* ]]
}

is_hardened() { # container
    local state
    state=$(docker exec "$1" grep -E '^(Uid|Cap...|NoNewPrivs):' \
        /proc/1/status) || return
    echo "$state"
    grep -qE '^Uid:(\s+[1-9][0-9]*){4}$' <<<"$state" &&
        grep -qE '^CapEff:\s+0+$' <<<"$state" &&
        grep -qE '^CapBnd:\s+0+$' <<<"$state" &&
        grep -qE '^NoNewPrivs:\s+1$' <<<"$state" &&
        ! docker exec --user 0 "$1" touch /written
}

is_durable() { # container
    local is
    is=$(docker exec "$1" sh -c 'for name in appendonly appendfsync \
        no-appendfsync-on-rewrite save maxmemory-policy; do
        redis-cli config get $name | tr "\n" " "; done')
    echo "$is"
    [ "${is% }" = "appendonly yes appendfsync always\
 no-appendfsync-on-rewrite no save  maxmemory-policy noeviction" ]
}

# Redis says it is Redis; so does Valkey, for its clients, and then what it is.
is_of_image() { # container
    local is
    is=$(docker exec "$1" redis-cli info server |
        sed -n 's/^\(redis\|valkey\)_version:.*/\1/p' | tail -n 1)
    echo "$is"
    [[ ${REDIS_IMAGE:-redis:8-alpine} == *"$is":* ]]
}

check_losses() {
    local at
    at=$(address 1)
    check "two nodes stop" compose stop redis1 redis2
    check "locks go on without two" locks_go_on "$at"
    check "meanwhile a new container takes over" replaces_redlockd
    at=$(address 1)
    check "locks go on in the new container" locks_go_on "$at"
    check "a third node stops" compose stop redis3
    check "now it says no_quorum" says_no_quorum "$at"
    check "it is not ready" request 503 "$at/readyz"
    check "its container turns unhealthy" \
        eventually 30 has_health unhealthy redlockd
    check "the three nodes start" compose start redis1 redis2 redis3
    check "it is ready again" eventually 20 request 200 "$at/readyz"
    check "locks go on again" locks_go_on "$at"
    check "all containers turn healthy" eventually 20 has_health healthy
    check "all five nodes vote again" eventually 20 has_votes "$at" 5
    check "two nodes pause" compose pause redis4 redis5
    check "locks go on meanwhile" locks_go_on "$at"
    check "the two nodes go on" compose unpause redis4 redis5
    check "all five nodes vote again" eventually 20 has_votes "$at" 5
    check "all containers turn healthy" eventually 20 has_health healthy
}

# --no-deps: `up` would wait for two nodes that do not come. The old container
# has granted a lock, the new one releases it.
replaces_redlockd() {
    local old
    old=$(container redlockd)
    take "$(address 1)" handed &&
        compose up -d --no-deps --force-recreate redlockd &&
        [ "$(container redlockd)" != "$old" ] &&
        eventually 20 has_health healthy redlockd &&
        give "$(address 1)" handed
}

says_no_quorum() { # address
    request 503 "$1/locks" --json '{"resource":"lost"}' &&
        [[ $body == *'"code":"no_quorum"'* ]]
}

has_votes() { # address number
    request 200 "$1/nodes" && [ "$(member voting)" = "$2" ]
}

check_replicas() {
    local one two
    check "a second redlockd starts" compose up -d --scale redlockd=2
    check "it turns healthy" eventually 30 has_health healthy
    one=$(address 1)
    two=$(address 2)
    check "it has a port of its own" test -n "$two" -a "$one" != "$two"
    check "one grants" take "$one" shared
    check "the other finds it held" \
        request 409 "$two/locks" --json '{"resource":"shared"}'
    check "the other extends" extend "$two" shared
    check "the other releases" give "$two" shared
    check "the number rises from one to the other" numbers_rise "$two" "$one"
    check "both are replaced, one after the other" replaces_both
    check "meanwhile no acquire fails after one retry" clients_noticed_nothing
    check "told to stop, it drains within 9 s and exits with 0" stops_in_time
}

# As docs/deploy/compose.md says; the new image differs by a label.
replaces_both() {
    local one two block upgraded
    one=$(address 1)
    two=$(address 2)
    block=$(awk '/^```sh$/ {text = ""; next} /^```$/ {
        if (text ~ /--no-recreate/) printf "%s", text
        text = ""
    } {text = text $0 "\n"}' docs/deploy/compose.md)
    [[ $block == *"docker compose build redlockd"* ]] || return
    work "$one" "$two" &
    build_upgrade &&
        block=${block/docker compose build redlockd/} &&
        eval "${block//docker compose/compose}"
    upgraded=$?
    touch "$dir/end"
    wait "$!"
    [ "$upgraded" -eq 0 ] && [ "$(docker ps -q --filter "$ours" \
        --filter label=upgraded=yes | wc -l)" -eq 2 ]
}

build_upgrade() {
    printf 'FROM %s\nLABEL upgraded=yes\n' "$REDLOCKD_IMAGE" |
        docker build -q -t "$REDLOCKD_IMAGE" -
}

# Acquires and releases until told to end, at one replica, and once more at the
# other if that fails.
work() { # address address
    local i at
    for ((i = 0; ; i++)); do
        [ ! -e "$dir/end" ] || break
        at=$1
        try "$at" "work:$i" || { at=$2 && try "$at" "work:$i"; } ||
            echo "work:$i: $body"
        give "$at" "work:$i"
        set -- "$2" "$1"
    done >"$dir/noticed" 2>&1
    echo "$i" >"$dir/cycles"
}

try() { # address resource
    request 201 "$1/locks" --json "{\"resource\":\"$2\",\"ttl_ms\":2000}" &&
        token=$(member token)
}

clients_noticed_nothing() {
    tail -n 20 "$dir/noticed"
    echo "$(cat "$dir/cycles") acquires"
    [ "$(cat "$dir/cycles")" -gt 50 ] && ! grep -q ^work: "$dir/noticed"
}

extend() { # address resource
    request 200 "$1/locks/$2/extend" -X PUT --json '{"ttl_ms":40000}' \
        -H "X-Lock-Token: $token"
}

numbers_rise() { # address…
    local at last=$number
    for at in "$@"; do
        take "$at" shared && give "$at" shared || return
        echo "$last, then $number"
        [ "$number" -gt "$last" ] || return
        last=$number
    done
}

stops_in_time() { # the second replica
    local id begun_ms
    id=$(container redlockd 2)
    begun_ms=$(date +%s%3N)
    docker stop -t 20 "$id" || return
    local took_ms=$(($(date +%s%3N) - begun_ms))
    echo "took $took_ms ms"
    docker logs --tail 3 "$id" 2>&1
    [ "$took_ms" -le 9500 ] &&
        [ "$(docker inspect -f '{{.State.ExitCode}}' "$id")" = 0 ] &&
        docker logs --tail 1 "$id" 2>&1 | grep -q event=stop
}

# What docs/deploy/compose.md tells operators to type.
check_operating() {
    local at
    at=$(address 1)
    check "a node takes another image" upgrades_redis "$at"
    check "a node that lost its volume comes back" replaces_volume "$at"
    [ -z "${VALKEY:-}" ] || {
        check "a node becomes Redis" becomes redis:8-alpine "$at"
        check "and Valkey again" becomes "$REDIS_IMAGE" "$at"
    }
    check "locks go on" locks_go_on "$at"
    check "the image takes its nodes from a file" serves_nodes_of_a_file
}

upgrades_redis() { # address
    docker tag "${REDIS_IMAGE:-redis:8-alpine}" "$other_redis" &&
        REDIS_IMAGE=$other_redis compose up -d --no-deps redis1 &&
        [ "$(docker inspect -f '{{.Config.Image}}' "$(container redis1)")" = \
            "$other_redis" ] &&
        eventually 20 has_votes "$1" 5
}

# It waits until the locks of before have ended: the greatest TTL, and a bit.
replaces_volume() { # address
    compose stop redis3 && compose rm -f redis3 &&
        docker volume rm "${project}_redis3" &&
        compose up -d --no-deps redis3 &&
        eventually 90 has_votes "$1" 5
}

# With an empty volume: Valkey 8 does not read the files of Redis 8.
becomes() { # image address
    local REDIS_IMAGE=$1
    export REDIS_IMAGE
    docker/make-images.sh && replaces_volume "$2" &&
        is_of_image "$(container redis3)"
}

serves_nodes_of_a_file() {
    local id
    echo redis1:6379,redis2:6379,redis3:6379,redis4:6379,redis5:6379 \
        >"$dir/nodes"
    chmod 644 "$dir/nodes"
    id=$(docker run -d --label "${ours#label=}" --read-only --cap-drop ALL \
        --security-opt no-new-privileges --network "${project}_nodes" \
        -v "$dir/nodes:/nodes:ro" -e REDLOCKD_NODES_FILE=/nodes \
        -e REDLOCKD_ALLOW_ANONYMOUS=yes \
        "$REDLOCKD_IMAGE") || return
    eventually 20 docker exec "$id" redlockctl ready
    local is_served=$?
    docker rm -f "$id"
    return $is_served
}

# The block of docs/guide.md, in a folder of its own.
check_guide() {
    check "an auth file, as the guide gives it" gets_auth_file
    check "without a token it answers 401" \
        eventually 20 request 401 "$(address 1)/locks/order:1"
    check "without the file, it knows everybody again" compose up -d --no-deps \
        redlockd
    check "all locks" eventually 30 request 200 "$(address 1)/locks/order:1"
}

gets_auth_file() {
    local block
    block=$(awk '/^```sh$/ {text = ""; next} /^```$/ {
        if (text ~ /auth\.yml/) printf "%s", text
        text = ""
    } {text = text $0 "\n"}' docs/guide.md)
    [[ $block == *" -f docker-compose.yml -f auth.yml "* ]] || return
    block=${block/docker compose -f docker-compose.yml -f auth.yml /compose -f "$dir/auth.yml" }
    # shellcheck disable=SC2016 # it is asked when the container has its port
    block=${block//127.0.0.1:8080/'$(address 1)'}
    block=${block//\$PWD/$dir}
    block=${block//>auth/>$dir/auth}
    block=${block/chmod 644 auth/chmod 644 $dir/auth}
    eval "$block" | tee /dev/stderr | grep -q '"version":"free"'
}

# As the docs say, without Grafana, which Debian does not have.
check_monitoring() {
    check "Prometheus starts" compose up -d prometheus
    check "it reaches redlockd" eventually 40 prometheus_says \
        'up{job="redlockd"} == 1'
    check "it has our rules" prometheus_has_rules
    check "it is no root, and cannot write its root" \
        is_hardened "$(container prometheus)"
    check "Grafana's files are where its settings say" grafana_finds_its_files
    check "Prometheus ends" compose rm -fs prometheus
}

prometheus_says() { # query
    request 200 "127.0.0.1:$PROMETHEUS_PORT/api/v1/query" -G \
        --data-urlencode "query=$1" &&
        jq -e '.data.result | length > 0' <<<"$body"
}

prometheus_has_rules() {
    request 200 "127.0.0.1:$PROMETHEUS_PORT/api/v1/rules" &&
        [ "$(jq '[.data.groups[].rules[]] | length' <<<"$body")" = \
            "$(grep -c 'alert:' deploy/prometheus/rules.yml)" ]
}

grafana_finds_its_files() {
    local config
    config=$(compose --profile monitoring config) || return
    grep -qF "$PWD/deploy/grafana/redlockd.json:/var/lib/grafana/dashboards/" \
        <<<"$config" &&
        grep -qF 'path: /var/lib/grafana/dashboards' \
            deploy/grafana/provisioning/dashboards/*.yml &&
        grep -qF 'http://prometheus:9090' \
            deploy/grafana/provisioning/datasources/*.yml
}

# The lock is taken for long enough to be held when the stack is up again.
check_restart() {
    local at last kept_token
    at=$(address 1)
    check "a lock is taken" take "$at" kept 60000
    kept_token=$token
    last=$number
    each_node fences >"$dir/fences"
    check "the stack goes down" compose down
    check "nothing of it runs" test -z "$(container redlockd)"
    check_or_end "it comes up again" compose up -d
    check_or_end "it turns healthy" eventually 30 has_health healthy
    at=$(address 1)
    check "the nodes remember each number" remember "$dir/fences"
    check "the lock is still held" \
        request 409 "$at/locks" --json '{"resource":"kept"}'
    token=$kept_token
    check "its holder can extend it" extend "$at" kept
    check "its holder can release it" give "$at" kept
    number=$last
    check "the next number is higher" numbers_rise "$at" "$at"
    check "no key is left behind" eventually 5 each_node has_no_lock
}

fences() { # container; a line a slot
    docker exec "$1" redis-cli hgetall redlockd:state | paste - - |
        { grep -E '^[0-9]+\s[0-9]{16}$' || true; } | sort
}

remember() { # file with the fences of all nodes
    [ -s "$1" ] && each_node fences | diff "$1" -
}

has_no_lock() { # container
    local keys
    keys=$(docker exec "$1" redis-cli --scan)
    echo "$keys"
    [ "$keys" = redlockd:state ]
}

# A night, in short: in CI a few seconds, else three minutes.
check_sleep() {
    local at
    at=$(address 1)
    check "an older copy of a volume is kept" keep_volume redis3
    check "locks go on behind it" locks_go_on "$at"
    check "the stack sleeps" sleeps
    check "its first lock is there at once" grants_at_once
    check "all five nodes vote" eventually 5 has_votes "$(address 1)" 5
    check "the stack sleeps with the older copy" sleeps put_volume_back redis3
    check "its first lock is there at once" grants_at_once
    check "the older copy comes back beside a lock of 60 s" \
        comes_back_old "$(address 1)" redis3
    check "a second redlockd starts" compose up -d --no-deps \
        --scale redlockd=2 redlockd
    at=$(address 2)
    check "it is ready" eventually 10 request 200 "$at/readyz"
    check "the older copy waits, for one" waits_alone "$(address 1)" redis3
    check "and for the other" waits_alone "$at" redis3
    compose up -d --no-deps --scale redlockd=1 redlockd >/dev/null 2>&1
    sed 's/^/the first lock /' "$dir/times"
}

volume() { # service
    docker volume inspect -f '{{.Mountpoint}}' "${project}_$1"
}

keep_volume() { # service
    cp -a "$(volume "$1")" "$dir/kept"
}

put_volume_back() { # service
    local at
    at=$(volume "$1") && rm -rf "${at:?}" && cp -a "$dir/kept" "$at"
}

# On a busy machine the others' promises may have ended before all are up again,
# and the node votes. Now they last for a minute.
comes_back_old() { # address service
    compose stop "$2" && put_volume_back "$2" && take "$1" kept 60000 &&
        compose start "$2"
}

sleeps() { # what to do meanwhile…
    compose down && { [ $# = 0 ] || "$@"; } && sleep "$sleep_s"
}

# Counted from the start of redlockd, which waits for healthy nodes.
grants_at_once() {
    local at begun_ms
    compose up -d || return
    at=$(address 1)
    begun_ms=$(date +%s%3N -d "$(docker inspect -f '{{.State.StartedAt}}' \
        "$(container redlockd)")")
    until take "$at" first >/dev/null 2>&1; do
        [ $(($(date +%s%3N) - begun_ms)) -lt 20000 ] || return
        sleep 0.1
    done
    echo "took $(($(date +%s%3N) - begun_ms)) ms" | tee -a "$dir/times"
    give "$at" first
}

waits_alone() { # address service
    local others
    request 200 "$1/nodes" || return
    others=$(jq '[.nodes[] | select(.state == "voting")] | length' <<<"$body")
    jq -r '.nodes[] | "\(.node) \(.state)"' <<<"$body"
    [ "$others" = 4 ] && jq -e --arg node "$2:6379" \
        '.nodes[] | select(.node == $node) | .state == "quarantined"' <<<"$body"
}

check_end() {
    check "down -v ends it" compose down -v
    check "and leaves nothing" is_gone
}

is_gone() {
    local left
    left=$(docker ps -aq --filter "$ours" && docker volume ls -q --filter "$ours" &&
        docker network ls -q --filter "$ours")
    echo "$left"
    [ -z "$left" ]
}

clean_up() {
    if [ "$checks_failed" -gt 0 ]; then
        [ -z "$(container redlockd)" ] || compose logs --tail 20 redlockd
    fi
    stack_remove
    docker rmi "$other_redis" >/dev/null 2>&1 || true
    rm -rf "$dir"
}

if ! docker version >/dev/null 2>&1; then
    echo "Skipped: no Docker engine answers here."
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
scripts/deps.sh run readme
stack_choose
[ -z "${VALKEY:-}" ] || export REDIS_IMAGE=valkey/valkey:8-alpine
docker/make-images.sh
dir=$(mktemp -d)
sleep_s=${CI:+5}
sleep_s=${sleep_s:-180}
other_redis=$project:redis
checks_begin clean_up
stack_remove
check_image
check_start
check_losses
check_guide
check_replicas
[ -n "${CI:-}" ] || check_operating # short in CI
check_monitoring
check_restart
check_sleep
check_end
