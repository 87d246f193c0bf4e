#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# openapi.yaml against the real thing: validators, schemathesis with all its
# phases and checks, and a generated client, over five nodes. EXAMPLES (200) of
# each operation that has parameters; SEED, else a new one each time. What it
# finds becomes a test of tests/integration. The tools are in build/openapi.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

listen=127.0.0.1:8380
guarded=127.0.0.1:8381
dir=build/openapi
tools=$dir/venv/bin
examples=${EXAMPLES:-200}
seed=${SEED:-$(($(date +%s%N) / 1000 % 1000000000))}
again="make openapi-test SEED=$seed EXAMPLES=$examples"

is_valid_as() { # version
    sed "s/^openapi: .*/openapi: $1/" openapi.yaml >"$dir/$1.yaml"
    "$tools/openapi-spec-validator" "$dir/$1.yaml"
}

is_served() {
    curl -fs -D "$dir/head" "http://$listen/openapi.yaml" | cmp - openapi.yaml
    grep -i '^content-type: application/yaml' "$dir/head"
}

schemathesis() { # host:port examples option…
    local at=$1 count=$2
    shift 2
    # a lock that was released is free, which is no 404: hooks.py has its own check
    SCHEMATHESIS_HOOKS=tests.openapi.hooks PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 \
        "$tools/schemathesis" --config-file tests/openapi/schemathesis.toml \
        --no-color run openapi.yaml \
        --url "http://$at" --seed "$seed" \
        --max-examples "$count" --checks all \
        --exclude-checks use_after_free "$@" \
        --phases examples,coverage,fuzzing,stateful --continue-on-failure \
        >"$dir/schemathesis.log" 2>&1 || {
        tail -n 100 "$dir/schemathesis.log" | cut -c 1-200
        [ -n "${SEED-}" ] ||
            echo "seed $seed is new, so your change need not be the cause"
        echo "replay with $again"
        return 1
    }
}

generate_client() {
    rm -rf "$dir/client"
    PATH=$PWD/$tools:$PATH "$tools/openapi-python-client" generate \
        --path openapi.yaml --meta none --output-path "$dir/client" \
        --config tests/openapi/client.yaml --fail-on-warning
}

client_works() {
    PYTHONPATH=$dir "$tools/python3" \
        tests/openapi/generators/jobs/job_client.py \
        "http://$listen" 30000 openapi 60000
}

scripts/deps.sh build run openapi
libraries_python "$dir" tests/openapi/requirements.txt
for at in "$listen" "$guarded"; do
    if stack_is_taken "${at##*:}"; then
        echo "Port ${at##*:} is taken." >&2
        exit 1
    fi
done
echo "replay with $again"
stack_begin
checks_begin stack_end
stack_start_nodes 5 7601 --appendonly no
stack_start_server "${REDLOCKD:-build/redlockd}" "$listen" --log-level error \
    --first-start yes
check "openapi.yaml is valid as 3.0.3" is_valid_as 3.0.3
check "openapi.yaml is valid as 3.1.0" is_valid_as 3.1.0
check "the server serves it as it is" is_served
check "schemathesis finds nothing, $examples examples" \
    schemathesis "$listen" "$examples"
sed -n '/^Test Phases:/,/^Seed:/p' "$dir/schemathesis.log"
# the same with an auth file, and a token that may do everything
(umask 077 && printf 'all sha256:%s lock,read,metrics,admin prefix=*\n' \
    "$(printf all-token | sha256sum | cut -d ' ' -f 1)" >"$stack_dir/auth")
open_server=$stack_server
stack_start_server "${REDLOCKD:-build/redlockd}" "$guarded" --log-level error \
    --auth-file "$stack_dir/auth"
check "with an auth file it finds nothing, $((examples / 10)) examples" \
    schemathesis "$guarded" "$((examples / 10))" \
    -H 'Authorization: Bearer all-token'
kill -INT "$stack_server"
wait "$stack_server" || true
stack_server=$open_server
check "a client is generated without a warning" generate_client
check "the generated client works" client_works
