#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The crate for Rust, with the compiler and the crates that Debian has: its
# transcripts, its README, its lints, and locks over servers that fail, made up ones
# and real ones. All is in build/rust. TRIES: how often each fault is played;
# arguments choose tests, such as check_rust or check_faults.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$PWD/build/rust

scripts/deps.sh build run test tls rust
# Debian's tools, if there are others, too; they fetch nothing
export PATH=/usr/bin:$PATH
export CARGO_HOME=$dir/home CARGO_TARGET_DIR=$dir/target CARGO_NET_OFFLINE=true
export TRANSCRIPTS=$PWD/tests/protocol
# it compiles in half the time
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
unset RUSTC RUSTFLAGS RUSTUP_TOOLCHAIN
mkdir -p "$CARGO_HOME"
cat >"$CARGO_HOME/config.toml" <<'EOF'
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
EOF
# Clippy looks at what is compiled: so nothing is compiled once more for it.
export RUSTC_WORKSPACE_WRAPPER=/usr/bin/clippy-driver
# The crate as it is published. It gets the stories, and is compiled anew: an unpacked
# file is as old as the package says.
rm -rf "$dir/source" "$dir/crate" "$CARGO_TARGET_DIR/package"
cp -a api/clients/rust "$dir/source"
rm -f "$dir/source/Cargo.lock"
cargo package --quiet --no-verify --allow-dirty --manifest-path "$dir/source/Cargo.toml"
mkdir "$dir/crate"
tar --extract --touch --strip-components 1 --directory "$dir/crate" \
    --file "$CARGO_TARGET_DIR"/package/*.crate
mkdir "$dir/crate/tests"
cp -p tests/rust/live.rs "$dir/crate/tests"
cargo build --quiet --examples --features tokio --manifest-path "$dir/crate/Cargo.toml"

export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/rust:tests/protocol:tests/lib:tests/interop:tests/examples
export HOLDER=$CARGO_TARGET_DIR/debug/examples/holder
tests=("$@")
[ "${#tests[@]}" -gt 0 ] || tests=(check_rust check_guard check_kept.Kept check_faults)
exec python3 tests/python/main.py "${tests[@]}"
