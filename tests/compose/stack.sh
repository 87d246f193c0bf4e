# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced by run.sh: the stack under test, and what is asked of it.

project=redlockd-test
ours=label=com.docker.compose.project=$project
export REDLOCKD_IMAGE=redlockd:test
export REDLOCKD_PUBLISH=''
# below the ports that other tests draw
export PROMETHEUS_PORT=9690

token=''  # of the last grant
number='' # of the last grant
body=''   # of the last answer

# Which docker-compose, and two ports that nobody listens on.
stack_choose() {
    if [ -n "${COMPOSE:-}" ]; then
        read -ra compose_command <<<"$COMPOSE"
    elif docker compose version >/dev/null 2>&1; then
        compose_command=(docker compose)
    elif command -v docker-compose >/dev/null; then
        compose_command=(docker-compose)
    else
        echo "An engine, but neither docker compose nor docker-compose" >&2
        exit 1
    fi
    local port=9680
    while stack_is_taken "$port" || stack_is_taken $((port + 1)); do
        port=$((port + 2))
    done
    REDLOCKD_PUBLISH=127.0.0.1:$port-$((port + 1))
    while stack_is_taken "$PROMETHEUS_PORT"; do
        PROMETHEUS_PORT=$((PROMETHEUS_PORT + 1))
    done
}

compose() { # argument…
    command "${compose_command[@]}" -p "$project" -f docker-compose.yml "$@"
}

# With its volumes; a paused container must go on before it can end.
stack_remove() {
    local paused
    paused=$(docker ps -q --filter "$ours" --filter status=paused)
    # shellcheck disable=SC2086 # one argument each
    [ -z "$paused" ] || docker unpause $paused >/dev/null
    compose down -v --remove-orphans >/dev/null 2>&1
}

# A replacement has a number of its own: replica 1 has the lowest.
container() { # service [replica]
    docker ps -a --filter "$ours" \
        --filter "label=com.docker.compose.service=$1" \
        --format '{{.Label "com.docker.compose.container-number"}} {{.ID}}' |
        sort -n | sed -n "${2:-1}s/.* //p"
}

# Runs a command with each container as its last argument, until one fails.
each_container() { # command…
    local id
    for id in $(docker ps -aq --filter "$ours"); do
        "$@" "$id" || return
    done
}

each_node() { # command…
    local n
    for n in 1 2 3 4 5; do
        "$@" "$(container "redis$n")" || return
    done
}

address() { # replica of redlockd; empty if it does not run
    docker port "$(container redlockd "$1")" 8080/tcp || true
}

# Of each container, or each of one service.
has_health() { # health [service]
    local is
    is=$(docker ps -aq --filter "$ours" \
        ${2:+--filter "label=com.docker.compose.service=$2"} |
        xargs docker inspect -f '{{.State.Health.Status}}' | sort -u)
    [ "$is" = "$1" ] || {
        echo "${2:-it} is $is"
        return 1
    }
}

request() { # status url curl-argument…
    local wanted=$1 url=$2 answer
    shift 2
    answer=$(curl -s -m 5 -w '\n%{http_code}' "$@" "$url")
    body=${answer%$'\n'*}
    [ "${answer##*$'\n'}" = "$wanted" ] || {
        echo "$url: want $wanted, not ${answer##*$'\n'}: $body"
        return 1
    }
}

member() { # name; of the last answer
    [[ $body =~ \"$1\":\"?([^,\"}]*) ]] && echo "${BASH_REMATCH[1]}"
}

# shellcheck disable=SC2034 # run.sh reads the number
take() { # address resource [ttl]
    local wish="{\"resource\":\"$2\",\"ttl_ms\":${3:-30000}}" tries=3
    # a busy disk may hold up three fsyncs for 200 ms: 503 means try again
    until request 201 "$1/locks" --json "$wish"; do
        tries=$((tries - 1))
        [[ $tries -gt 0 && $body == *'"status":503'* ]] || return
    done
    token=$(member token) && number=$(member fencing_token)
}

give() { # address resource
    request 200 "$1/locks/$2" -X DELETE -H "X-Lock-Token: $token"
}

# Each of the two calls may be tried for a second: four rounds of 250 ms.
locks_go_on() { # address
    local i begun_ms
    for i in {1..20}; do
        begun_ms=$(date +%s%3N)
        take "$1" "again:$i" && give "$1" "again:$i" || return
        [ $(($(date +%s%3N) - begun_ms)) -lt 3000 ] || {
            echo "cycle $i took three seconds"
            return 1
        }
    done
}
