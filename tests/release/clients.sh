# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# To be sourced: the packages of the clients, each installed as a user would, without a
# registry. What takes the lock is the holder of the tests of its language.
#
# dir, dist, root, version and url come from run.sh
# shellcheck disable=SC2154

# The holder ends when its standard input does: at once.
takes_a_lock() { # name command…
    local said
    said=$(REDLOCKD_URL=$url timeout 60 "${@:2}" "release:$1" 10000 </dev/null)
    grep -v -E '^(step|ctx) ' <<<"$said"
    grep -qE '^held [0-9]+ [1-9]' <<<"$said" &&
        grep -qE '^released [0-9]+ <nil>$' <<<"$said"
}

package() { # pattern: the path of the file of the clients that matches
    compgen -G "$dist/clients/$1"
}

folder() { # name: a new one
    rm -rf "$dir/${1:?}"
    mkdir -p "$dir/$1"
}

installs_for_python() { # pattern
    rm -rf "$dir/python"
    python3 -m venv "$dir/python" &&
        "$dir/python/bin/pip" install -q --disable-pip-version-check \
            -c tests/python/requirements.txt "$(package "$1")" &&
        takes_a_lock python "$dir/python/bin/python3" tests/python/holder.py
}

installs_for_node() {
    folder node
    cp tests/node/holder.mjs "$dir/node/"
    (cd "$dir/node" && npm init -y >/dev/null &&
        npm install --silent --offline --no-audit "$(package '*.tgz')") &&
        takes_a_lock node node "$dir/node/holder.mjs"
}

# dist/clients/go as a proxy of modules
installs_for_go() {
    local module proxy=file://$dist/clients/go
    module=$(sed -n 's/^module //p' api/clients/go/go.mod)
    folder go
    cp -r tests/go/user/holder "$dir/go/"
    (cd "$dir/go" && export GOPROXY=$proxy GOSUMDB=off GOWORK=off GOTOOLCHAIN=local \
        GOFLAGS="-mod=mod -modcacherw" GOMODCACHE=$dir/go/cache &&
        go mod init example.org/user && go get "$module@v$version" &&
        go build -o "$dir/go/hold" ./holder) &&
        takes_a_lock go "$dir/go/hold"
}

installs_for_php() {
    rm -rf "$dir/php"
    python3 -m zipfile -e "$(package '*.zip')" "$dir/php" &&
        PACKAGE=$dir/php takes_a_lock php php tests/php/holder.php
}

installs_for_ruby() {
    rm -rf "$dir/ruby"
    gem install --silent --local --no-document --install-dir "$dir/ruby" \
        "$(package '*.gem')" &&
        GEM_HOME=$dir/ruby takes_a_lock ruby ruby -W tests/ruby/holder.rb
}

installs_for_java() {
    local jar
    jar=$(package "*-$version.jar")
    folder java
    javac -Werror -cp "$jar" -d "$dir/java" tests/java/Holder.java &&
        takes_a_lock java java -cp "$jar:$dir/java" Holder
}

compiles_the_sources_of_java() {
    folder java-source
    (cd "$dir/java-source" && jar -xf "$(package '*-sources.jar')" &&
        javac -d classes -sourcepath . "$root/tests/java/Holder.java") &&
        takes_a_lock java-source java -cp "$dir/java-source/classes" Holder
}

# With the compiler and the crates of Debian; a user of crates.io has others.
installs_for_rust() {
    local crate
    crate=$(package '*.crate')
    folder rust/user/src
    tar -C "$dir/rust" -xf "$crate"
    crate=$dir/rust/$(basename "$crate" .crate)
    cp "$crate/examples/holder.rs" "$dir/rust/user/src/main.rs"
    cat >"$dir/rust/user/Cargo.toml" <<END
[package]
name = "user"
version = "1.0.0"
edition = "2021"
[dependencies]
libc = "0.2"
$(sed -n 's/^name = "\(.*\)"$/\1/p' "$crate/Cargo.toml" | head -n 1) = {path = "$crate"}
END
    mkdir "$dir/rust/home"
    cat >"$dir/rust/home/config.toml" <<'END'
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
END
    rm "$crate/Cargo.lock"
    env -u RUSTC -u RUSTFLAGS -u RUSTUP_TOOLCHAIN PATH="/usr/bin:$PATH" \
        CARGO_HOME="$dir/rust/home" CARGO_TARGET_DIR="$dir/rust/target" \
        cargo build --quiet --offline --manifest-path "$dir/rust/user/Cargo.toml" &&
        takes_a_lock rust "$dir/rust/target/debug/user"
}

check_clients() {
    check "pip installs the wheel" installs_for_python '*.whl'
    check "pip installs the source archive" installs_for_python '*.tar.gz'
    check "npm installs its archive" installs_for_node
    check "go gets the module" installs_for_go
    check "PHP loads what is in the zip" installs_for_php
    check "gem installs the gem" installs_for_ruby
    check "javac takes the jar" installs_for_java
    check "javac takes the sources" compiles_the_sources_of_java
    check "cargo takes the crate" installs_for_rust
}
