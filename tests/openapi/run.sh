#!/usr/bin/env bash
# openapi.yaml against the real thing: validators, schemathesis with all its
# phases and checks, and a generated client, over five nodes. EXAMPLES (200) of
# each operation that has parameters, SEED (1). The tools are in build/openapi.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

listen=127.0.0.1:8380
dir=build/openapi
tools=$dir/venv/bin
examples=${EXAMPLES:-200}

is_valid_as() { # version
    sed "s/^openapi: .*/openapi: $1/" openapi.yaml >"$dir/$1.yaml"
    "$tools/openapi-spec-validator" "$dir/$1.yaml"
}

is_served() {
    curl -fs -D "$dir/head" "http://$listen/openapi.yaml" | cmp - openapi.yaml
    grep -i '^content-type: application/yaml' "$dir/head"
}

schemathesis() {
    SCHEMATHESIS_HOOKS=tests.openapi.hooks PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 \
        "$tools/schemathesis" --config-file tests/openapi/schemathesis.toml \
        --no-color run openapi.yaml \
        --url "http://$listen" --seed "${SEED:-1}" \
        --max-examples "$examples" --checks all \
        --phases examples,coverage,fuzzing,stateful --continue-on-failure \
        >"$dir/schemathesis.log" 2>&1 || {
        tail -n 100 "$dir/schemathesis.log" | cut -c 1-200
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
    PYTHONPATH=$dir "$tools/python3" tests/openapi/use_client.py "http://$listen"
}

scripts/deps.sh build run openapi
libraries_python "$dir" tests/openapi/requirements.txt
if stack_is_taken "${listen##*:}"; then
    echo "Port ${listen##*:} is taken." >&2
    exit 1
fi
stack_begin
checks_begin stack_end
stack_start_nodes 5 7601 --appendonly no
stack_start_server "${REDLOCKD:-build/redlockd}" "$listen" --log-level error \
    --first-start yes
check "openapi.yaml is valid as 3.0.3" is_valid_as 3.0.3
check "openapi.yaml is valid as 3.1.0" is_valid_as 3.1.0
check "the server serves it as it is" is_served
check "schemathesis finds nothing, $examples examples" schemathesis
sed -n '/^Test Phases:/,/^Seed:/p' "$dir/schemathesis.log"
check "a client is generated without a warning" generate_client
check "the generated client works" client_works
