#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Pastes what the pages show after "$ " into a shell, over a stack of its own or
# the one that serves at $1 (host:port), and compares what comes out.
# Numbers, tokens and times may differ. README_LISTEN says where its own serves.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

ours=$(($# == 0)) # 1: the stack is our own
listen=${1:-${README_LISTEN:-127.0.0.1:8280}}
redlockctl=${REDLOCKCTL:-build/redlockctl}
redlockctl=$(realpath "$redlockctl")
PATH=$(dirname "$redlockctl"):$PATH
export PATH REDLOCKD_URL="http://$listen"
stack_begin
# README names them where they are in a clone
mkdir "$stack_dir/build" "$stack_dir/bin"
ln -s "$redlockctl" "$stack_dir/build/redlockctl"
ln -s "$(realpath "${REDLOCKD:-build/redlockd}")" "$stack_dir/build/redlockd"
PATH=$stack_dir/build:$PATH
ln -s "$PWD/api" "$stack_dir/api"
# Ubuntu 22.04 has curl 7.81: it knows none of these
cat >"$stack_dir/bin/curl" <<END
#!/bin/sh
for word; do
    case \$word in
    --json | --json=* | --url-query* | --rate | --variable | --expand-* | \\
        --no-clobber | --remove-on-error | --ca-native | --http3-only)
        echo "curl 7.81 does not know \$word" >&2
        exit 2
        ;;
    esac
done
exec $(command -v curl) "\$@"
END
chmod +x "$stack_dir/bin/curl"
PATH=$stack_dir/bin:$PATH
if [ $# -eq 0 ]; then
    if stack_is_taken "${listen##*:}"; then
        echo "Port ${listen##*:} is taken." >&2
        exit 1
    fi
    stack_start_nodes 5 7301 --appendonly yes --appendfsync always
    stack_start_server "${REDLOCKD:-build/redlockd}" "$listen" --log-level warn
fi
# what the guide starts
store_port=8290
while stack_is_taken "$store_port" || stack_is_taken $((store_port + 1)); do
    store_port=$((store_port + 2))
done
other_port=$((store_port + 1))
# a node that comes late has no lock to release, and changes the counts
wait_for_all() {
    for _ in {1..200}; do
        curl -s "http://$listen/nodes" | grep -q '"voting":5,' && break
        sleep 0.05
    done
}
wait_for_all

# A page that talks to the nodes lets one hang: only if it is ours.
mapfile -t pages < <(printf '%s\n' README.md api/clients/examples/README.md
    find docs -name '*.md' | sort)
# for machines of their own: `make production`
mapfile -t pages < <(printf '%s\n' "${pages[@]}" | grep -v production)
[ $# -eq 0 ] || mapfile -t pages < <(grep -L '^\$ redis-cli' "${pages[@]}")

# Each console block on a line: page, tab, commands, tab, expected output. The
# guide is one block: it starts what its later blocks use. Of a stack that is not
# ours, nobody knows the nodes.
blocks() {
    awk -v OFS='\t' -v ours="$ours" '
        function end_block() {
            if (commands != "" && (ours || commands !~ /710[1-5]/))
                print page, commands, output
            commands = output = ""
        }
        FNR == 1 {end_block(); page = FILENAME}
        /^ *```console$/ {
            inside = 1
            indent = index($0, "`") - 1
            if (page !~ /guide/) end_block()
            next
        }
        /^ *```/ && inside {inside = 0; next}
        inside {line = substr($0, indent + 1)}
        inside && line ~ /^\$ / {
            commands = commands substr(line, 3) (line ~ /&$/ ? " " : "; ")
            next
        }
        inside {output = output line}
        END {end_block()}' "${pages[@]}"
}

# the ports that the pages name, as those of this stack
localize() { # text
    local text=${1//127.0.0.1:8080/$listen} i
    text=${text//8090/$store_port}
    text=${text//8092/$other_port}
    for i in "${!stack_nodes[@]}"; do
        text=${text//710$((i + 1))/${stack_nodes[i]##*:}}
    done
    printf '%s' "$text"
}

mask() { # what differs from run to run
    sed -E 's/"request_id":"[0-9a-f]{16}"/"request_id":"ID"/g
            s/[0-9]{16}\.[0-9a-f]{40}/TOKEN/g; s/[0-9]{16}/NUMBER/g
            s/"(validity|elapsed|waited|remaining|retry_after)_ms":( ?)[0-9]+/"\1_ms":\2MS/g
            s/"(granted|held|released|asked)":[1-5]/"\1":MOST/g
            s/for [0-9.]+ s/for S/g'
}

# The scripts that the pages show, but those for Docker and systemd, which
# compose-test and deb-test go through, those for a cluster, and whole programs,
# which `make examples` runs; a record separator after each.
scripts() {
    awk '
        /^```sh$/ {inside = 1; text = ""; next}
        /^```/ && inside {
            if (text !~ /docker|kubectl|systemctl|apt-get|^#!/)
                printf "%s\036", text
            inside = 0
            next
        }
        inside {text = text $0 "\n"}' "${pages[@]}"
}

passed=0
failed=0

report() { # status text what-came
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\nended badly:\n%s\n' "$2" "$3"
    fi
}

# Each runs; and pasted while somebody has its lock it fails, but does not end
# the reader's shell.
run_scripts() {
    local text came status
    while IFS= read -r -d $'\036' text; do
        text=${text//127.0.0.1:8080/$listen}
        status=0
        came=$(cd "$stack_dir" && bash -euc "$text" 2>&1) || status=$?
        report "$status" "$text" "$came"
        curl -sf -o "$stack_dir/held" -H 'Content-Type: application/json' \
            -d '{"resource":"order:42"}' "http://$listen/locks"
        came=$(cd "$stack_dir" && bash -c "$text"$'\necho "shell: alive"' 2>&1) ||
            true
        [[ $came == *"shell: alive"* ]] && status=0 || status=1
        report "$status" "$text" "$came"
        curl -sf -o /dev/null -X DELETE "http://$listen/locks/order:42" \
            -H "X-Lock-Token: $(jq -r .token "$stack_dir/held")"
    done < <(scripts)
}

# All blocks, with the ports of this stack.
paste() {
    local page commands expected actual
    while IFS=$'\t' read -r page commands expected; do
        # what it leaves running ends with it
        actual=$(cd "$stack_dir" && timeout 120 bash -c \
            "trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT; $(localize "$commands")") || true
        actual=${actual//$'\n'/} # as blocks joins what the page shows
        if [ "$(mask <<<"$actual")" = "$(mask <<<"$expected")" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf '$ %s\n  %s shows: %s\n  it prints: %s\n' \
                "$commands" "$page" "$expected" "$actual"
        fi
    done < <(blocks)
}

paste
run_scripts
if [ $# -eq 0 ]; then
    # once more, as the user that the docs tell to create, on all nodes
    acl=$(blocks | sed -n "s/^[^\t]*\t\(redis-cli .*ACL SETUSER.*\);.*/\1/p")
    [ -n "$acl" ]
    for node in "${stack_nodes[@]}"; do
        bash -c "${acl//7101/${node##*:}}" >"$stack_dir/acl"
    done
    # of releases, which nothing that the docs show waits for
    for command in 'PUBLISH redlockd:released:order:42 x' \
        'SUBSCRIBE redlockd:released: redlockd:released:order:42' UNSUBSCRIBE; do
        # shellcheck disable=SC2086 # words of a command
        answer=$(redis-cli -p "${stack_nodes[0]##*:}" \
            ACL DRYRUN redlockd $command)
        [ "$answer" = OK ] || {
            failed=$((failed + 1))
            echo "ACL: $command: $answer"
        }
    done
    kill -INT "$stack_server"
    wait "$stack_server" || true
    plain=("${stack_nodes[@]}")
    stack_nodes=("${plain[@]/#/redis://redlockd:change-me@}")
    stack_start_server "${REDLOCKD:-build/redlockd}" "$listen" --log-level warn
    stack_nodes=("${plain[@]}")
    wait_for_all
    # what the guide asks of the nodes, the other pages ask as well
    mapfile -t pages < <(printf '%s\n' "${pages[@]}" | grep -v guide)
    paste
fi
[ $((passed + failed)) -gt 0 ] || failed=1
echo "readme: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
