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

# folder crate program: the program is in folder/release then. Without a cargo
# that builds it, it says so and fails, and there is no program.
libraries_rust() {
    if ! command -v cargo >/dev/null; then
        echo "$3: skipped, there is no cargo (1.85 or newer)" >&2
        rm -f "$1/release/$3"
        return 1
    fi
    nice cargo build -q --locked --release --target-dir "$1" \
        --manifest-path "$2/Cargo.toml" || {
        echo "$3: skipped, $(cargo --version) does not build it;" \
            "it needs 1.85 or newer" >&2
        rm -f "$1/release/$3"
        return 1
    }
}
