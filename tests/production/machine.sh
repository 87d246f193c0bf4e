#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Boots a tree with systemd, on top of what is in LOWER, which stays as it is:
#   machine.sh LOWER FOLDER
# FOLDER/upper has what differs. Prints the process id of systemd when the
# system is up; ends it when stdin ends.
set -euo pipefail
if [ -z "${MACHINE_MOUNTS:-}" ]; then
    # what is mounted goes with the last process
    exec env MACHINE_MOUNTS=own unshare --mount --propagation private "$0" "$@"
fi
lower=$(realpath "$1")
folder=$(realpath "$2")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/package/boot.sh
source tests/package/boot.sh

trap boot_end EXIT
trap 'exit 143' INT TERM HUP
mkdir -p "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay "$folder/root" -o \
    "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work"
boot_begin "$folder/root" >&2
# shellcheck disable=SC2154 # boot.sh sets it
echo "$boot_init"
read -r _ || true
