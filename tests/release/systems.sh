# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# To be sourced: Debian's packages from the folder for apt-get, in bare trees, and the
# image in Docker. Each is a server of its own over the same five masters.
#
# dir, dist, version, url, keys come from run.sh; stack_nodes from stack.sh
# shellcheck disable=SC2154

web=''       # pid of the web server for apt-get
container=''
image=''
tree=''

systems_end() {
    local had=$image
    [ -z "$web" ] || {
        kill "$web"
        wait "$web" || true
        web=''
    }
    [ -z "$container" ] || docker rm -f "$container" >/dev/null
    container=''
    image=''
    [ -z "$had" ] || docker rmi -f "$had" >/dev/null
    [ -z "$tree" ] || [ ! -e "$tree" ] || debian_remove "$tree"
    tree=''
}

nodes() {
    local IFS=,
    echo "${stack_nodes[*]}"
}

tree_begin() { # release
    tree=$dir/tree-$1
    debian_prepare "$1" "$tree"
}

in_tree() { # command…
    debian_run "$tree" "$@"
}

# ---- packages ------------------------------------------------------------------------

# The commands of docs/deploy/debian.md, with a web server here; in the tree, root needs
# no sudo.
installs_as_the_page_says() {
    local port commands
    port=$(free_port)
    local page=https://packages.example.com/apt here=http://127.0.0.1:$port
    stack_spawn python3 -m http.server -d "$dist/apt" --bind 127.0.0.1 "$port"
    web=$!
    stack_until 100 stack_is_taken "$port" || return
    commands=$(sed -n '/^## Install from a release/,/^```$/p' docs/deploy/debian.md |
        sed -e '1,/^```sh$/d' -e '/^```$/d' -e "s|$page|$here|")
    printf '%s\n' 'Acquire::http::Proxy::127.0.0.1 "DIRECT";' \
        'APT::Get::Assume-Yes "true";' 'APT::Install-Recommends "false";' \
        >"$tree/etc/apt/apt.conf.d/02test"
    cp "$dist/apt/redlockd.gpg" "$tree/root/"
    in_tree sh -ec "cd
        sudo() { \"\$@\"; }
        $commands" && are_installed
}

# From a folder, without a signature.
adds_the_folder() { # release
    cp -r "$dist/apt" "$tree/srv/"
    rm -f "$tree/srv/apt/dists/$1/InRelease" "$tree/srv/apt/dists/$1/Release.gpg"
    echo "deb [trusted=yes] file:/srv/apt $1 main" \
        >"$tree/etc/apt/sources.list.d/redlockd.list"
    in_tree apt-get update
}

refuses_a_folder_that_changed() { # release
    local packages=$tree/srv/apt/dists/$1/main/binary-$arch/Packages
    cp -a "$packages" "$packages.gz" "$tree/root/"
    sed -i 's/^Description: .*/Description: something else/' "$packages"
    rm "$packages.gz"
    ! in_tree sh -c 'rm -rf /var/lib/apt/lists/*; apt-get update -o APT::Update::Error-Mode=any' ||
        return
    cp -a "$tree/root/Packages" "$tree/root/Packages.gz" "${packages%/*}/"
    in_tree apt-get update
}

installs_packages() {
    in_tree apt-get install -y -qq --no-install-recommends redlockd redlockctl &&
        are_installed
}

are_installed() {
    in_tree dpkg-query -W redlockd redlockctl | tee /dev/stderr |
        grep -cF "	$version~deb" | grep -qx 2
}

# The first process of the tree is the shell: nothing outlives it.
# shellcheck disable=SC2016 # for that shell
serves_from_the_tree() {
    in_tree sh -ec 'export REDLOCKD_URL=http://$1
        redlockd --listen "$1" --nodes "$2" &
        for _ in $(seq 100); do
            ! redlockctl ready || break
            sleep 0.2
        done
        redlockctl run release:packages -- echo has it
        kill -INT $!
        wait $!' sh "127.0.0.1:$(free_port)" "$(nodes)" | tee /dev/stderr |
        grep -qx 'has it'
}

check_packages() {
    local release number
    for release in bookworm trixie; do
        check_or_end "$release: a bare tree is made" tree_begin "$release"
        if [ "$release" = bookworm ] && [ -e "$dist/apt/redlockd.gpg" ]; then
            check "$release: the page's commands install signed packages" \
                installs_as_the_page_says
        else
            check "$release: apt-get takes the folder" adds_the_folder "$release"
            check "$release: … and refuses it if it was changed" \
                refuses_a_folder_that_changed "$release"
            check "$release: apt-get installs both packages" installs_packages
        fi
        check "$release: they serve a lock" serves_from_the_tree
        systems_end
    done
    check "the archives of binaries have what the packages have" binaries_are_the_same
    check "that of the folder for apt-get has it, without signatures" \
        folder_is_the_same
}

folder_is_the_same() {
    rm -rf "$dir/files"
    mkdir "$dir/files"
    tar -C "$dir/files" -xf "$dist/redlockd-$version-apt.tar.gz"
    diff -r -x InRelease -x Release.gpg -x redlockd.gpg "$dir/files/apt" "$dist/apt" &&
        ! find "$dir/files" -name InRelease | grep .
}

binaries_are_the_same() {
    local number package
    for number in 12 13; do
        rm -rf "$dir/files"
        mkdir -p "$dir/files/archive" "$dir/files/packages"
        tar -C "$dir/files/archive" --strip-components 1 \
            -xf "$dist/redlockd-$version-debian$number-$arch.tar.gz" || return
        for package in "$dist"/apt/pool/*/redlock[dc]*_"$version~deb${number}_$arch".deb; do
            [[ $package == *-dbgsym_* ]] || dpkg-deb -x "$package" "$dir/files/packages"
        done
        diff -r --no-dereference "$dir/files/archive" "$dir/files/packages" || return
    done
}

# ---- the image -------------------------------------------------------------------------

loads_the_image() {
    image=$(docker load -i "$dist/redlockd-$version-image-$arch.tar" |
        sed -n 's/^Loaded image: //p')
    [ "$image" = "$(. scripts/project.env && echo "$IMAGE"):$version" ] &&
        docker run --rm --network none --read-only --cap-drop ALL "$image" --version |
        grep -F "$version"
}

has_health() {
    [ "$(docker inspect -f '{{.State.Health.Status}}' "$container")" = healthy ]
}

runs_the_image() {
    local at
    at=127.0.0.1:$(free_port)
    container=$(docker run -d --network host --read-only --cap-drop ALL \
        -e "REDLOCKD_LISTEN=$at" -e "REDLOCKD_NODES=$(nodes)" \
        -e REDLOCKD_ALLOW_ANONYMOUS=yes "$image") || return
    eventually 30 has_health || {
        docker logs "$container"
        return 1
    }
    docker exec "$container" redlockctl run --url "http://$at" release:image -- \
        echo has it | grep -x 'has it'
}

is_in_its_bill() {
    # shellcheck disable=SC2016 # for dpkg-query
    docker run --rm --network none --entrypoint dpkg-query "$image" \
        -W -f '${Package} ${Version}\n' | sort >"$dir/installed"
    jq -r '.components[] | "\(.name) \(.version)"' \
        "$dist/redlockd-$version-image-$arch.cdx.json" | sort |
        diff "$dir/installed" - && grep -q '^libmicrohttpd' "$dir/installed"
}

check_image() {
    check_or_end "docker loads the image" loads_the_image
    check "its container turns healthy, and serves a lock" runs_the_image
    check "its bill of materials lists what is installed" is_in_its_bill
    systems_end
}
