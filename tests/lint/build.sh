#!/usr/bin/env bash
# A new VERSION must reach the binary: each file that names it is built anew.
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=0
plan=$(make --no-print-directory -n -W VERSION V=1 \
    FLAVOUR=release build)
while IFS= read -r file; do
    grep -q -- "-o build/release/${file%.c}.o" <<<"$plan" || {
        echo "Makefile: a new VERSION does not rebuild $file"
        failed=1
    }
done < <(grep -l REDLOCKD_VERSION server/*.c server/*/*.c api/*.c cli/*.c)
exit "$failed"
