# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: starts and stops Redis masters and redlockd on loopback.
#
# Each child has its own session, so that Ctrl-C reaches only the script, and
# redlockd can drain before its nodes end. Each dies with the script, even if
# that gets SIGKILL.

shopt -s inherit_errexit # what fails inside $(…) fails

stack_nodes=()  # host:port of each node
stack_pids=()   # of the nodes
stack_server='' # pid of redlockd
stack_dir=''
stack_scheme=http # https: the server gets a certificate

stack_is_taken() { # port
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

stack_spawn() { # command…
    setsid setpriv --pdeathsig KILL -- "$@" &
}

stack_begin() {
    stack_dir=$(mktemp -d "${TMPDIR:-/tmp}/redlockd.XXXXXX")
    trap stack_end EXIT
    trap 'exit 0' INT # not a failure
    trap 'exit 143' TERM HUP
}

stack_end() {
    trap '' INT TERM HUP
    if [ -n "$stack_server" ]; then
        kill -INT "$stack_server" 2>/dev/null || true # no balancer to wait for
        wait "$stack_server" 2>/dev/null || true
    fi
    for pid in "${stack_pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$stack_dir"
}

# tries command…: until it succeeds, ten times a second; false: it never did
stack_until() {
    local tries=$1
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# count first-port redis-option…; skips ports that are in use.
stack_start_nodes() {
    local count=$1 port=$2
    shift 2
    while [ ${#stack_pids[@]} -lt "$count" ]; do
        if ! stack_is_taken "$port"; then
            mkdir "$stack_dir/$port"
            stack_spawn redis-server --bind 127.0.0.1 --port "$port" \
                --dir "$stack_dir/$port" --save '' "$@" \
                >"$stack_dir/$port/log" 2>&1
            stack_pids+=("$!")
            stack_nodes+=("127.0.0.1:$port")
        fi
        port=$((port + 1))
    done
}

# binary host:port option…; returns when it is ready.
stack_start_server() {
    local binary=$1 listen=$2 tries=0
    shift 2
    local IFS=,
    stack_spawn "$binary" --listen "$listen" --nodes "${stack_nodes[*]}" "$@"
    stack_server=$!
    until curl -kfs -o /dev/null "$stack_scheme://$listen/readyz"; do
        if ! kill -0 "$stack_server" 2>/dev/null; then
            wait "$stack_server" || true
            echo "redlockd did not start" >&2
            return 1
        fi
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            echo "redlockd is not ready after 20 s" >&2
            return 1
        fi
        sleep 0.1
    done
}
