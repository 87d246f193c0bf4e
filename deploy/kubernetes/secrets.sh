#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints the two Secrets of base/redlockd.yaml, with a new random password:
#   deploy/kubernetes/secrets.sh | kubectl create -f -
# The nodes get its hash only. NODES=3 is for overlays/three, SCHEME=rediss for
# components/tls; NAMESPACE names another namespace. `create` does not replace
# what there is already.
set -euo pipefail
nodes=${NODES:-5}
scheme=${SCHEME:-redis}
[[ $nodes =~ ^[13579]$ ]] || {
    echo "secrets.sh: NODES=$nodes: must be 1, 3, 5, 7 or 9" >&2
    exit 1
}
[[ $scheme =~ ^rediss?$ ]] || {
    echo "secrets.sh: SCHEME=$scheme: must be redis or rediss" >&2
    exit 1
}

random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

hash_of() { # password
    printf %s "$1" | sha256sum | cut -d' ' -f1
}

secret() { # name key
    cat <<END
---
apiVersion: v1
kind: Secret
metadata:
  name: $1
  namespace: ${NAMESPACE:-redlockd}
  labels: {app.kubernetes.io/name: redlockd}
stringData:
  $2: |
END
    sed 's/^/    /'
}

password=$(random)

# Nobody knows the password of `default`. It must keep all commands: Redis loads
# its append-only file as this user, and drops what a script wrote if the user
# may not do it. `probe` is for the probes.
secret redis-users users.acl <<END
user default reset on #$(hash_of "$(random)") ~* &* +@all
user probe reset on nopass -@all +ping
user redlockd reset on #$(hash_of "$password") ~* &redlockd:released:* -@all +evalsha +script|load +time +info +config|get +acl|getuser +client|setname +hget +hmget +hset +hdel +exists +set +mget +getrange +pttl +pexpire +pexpireat +pexpiretime +del +zadd +zrem +zscore +zmscore +zcount +zrange +zremrangebyscore +scan +publish +subscribe +unsubscribe
END
for ((i = 0; i < nodes; i++)); do
    echo "$scheme://redlockd:$password@redis-$i.redis:6379"
done | secret redlockd-nodes nodes
