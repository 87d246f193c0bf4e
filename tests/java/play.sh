#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles the package in the folder $PACKAGE, and plays the transcripts with it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
find "$PACKAGE/src" -name '*.java' -print0 |
    xargs -0 javac -d "$PACKAGE/classes" "$root/tests/java/Transcripts.java"
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$PACKAGE/classes" \
    org.redlockd.Transcripts "$root/tests/protocol"
