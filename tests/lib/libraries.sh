# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: installs what lock libraries need.

# folder requirements: a venv in the folder, anew if the requirements changed.
libraries_python() {
    cmp -s "$2" "$1/installed" && return
    rm -rf "$1/venv"
    mkdir -p "$1"
    python3 -m venv "$1/venv"
    "$1/venv/bin/pip" install -q --disable-pip-version-check -r "$2"
    cp "$2" "$1/installed"
}

# profile program: one of those in rslock/, in build/rslock/profile then.
# Without a cargo that builds it, it says so and fails, and there is no program.
libraries_rust() {
    if ! command -v cargo >/dev/null; then
        echo "$2: skipped, there is no cargo (1.85 or newer)" >&2
        rm -f "build/rslock/$1/$2"
        return 1
    fi
    nice cargo build -q --locked --profile "$1" --bin "$2" --target-dir build/rslock \
        --manifest-path tests/lib/rslock/Cargo.toml || {
        echo "$2: skipped, $(cargo --version) does not build it;" \
            "it needs 1.85 or newer" >&2
        rm -f "build/rslock/$1/$2"
        return 1
    }
}
