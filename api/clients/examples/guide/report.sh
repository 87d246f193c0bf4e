#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes the report of a day, section by section. Each machine has this line in
# its crontab:
#   0 2 * * * redlockctl run -n -E 0 -t 60 report -- /usr/local/bin/report.sh
set -eu
store=${STORE:-http://127.0.0.1:8090}
today=$(date +%F)

write() { # path text
    curl -fsS -X PUT -H "X-Fencing-Token: $REDLOCKD_FENCING_TOKEN" \
        -d "$2" "$store/report/$1"
}

# another machine may have finished before our clock reached two
[ "$(curl -s "$store/report/day")" != "$today" ] || exit 0
for section in orders stock returns; do
    write "$section" "of $today"
done
write day "$today"
echo "report of $today: done"
