#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages that are missing, for each group named:
#   deps.sh build | run | test | lint | analyse | bench …
# Without apt-get it lists what is missing and stops.
set -euo pipefail

missing=()

need_command() { # command package
    command -v "$1" >/dev/null || missing+=("$2")
}

need_library() { # pkg-config-name package
    pkg-config --exists "$1" 2>/dev/null || missing+=("$2")
}

need_debian_python() { # module package
    /usr/bin/python3 -c "import $1" 2>/dev/null || missing+=("$2")
}

need_file() { # path package
    [ -e "$1" ] || missing+=("$2")
}

need_group() {
    case $1 in
    build)
        need_command cc gcc
        need_command make make
        need_command pkg-config pkg-config
        need_library libmicrohttpd libmicrohttpd-dev
        need_library hiredis libhiredis-dev
        need_library jansson libjansson-dev
        need_library libcurl libcurl4-openssl-dev
        need_library libuv libuv1-dev
        need_library gnutls libgnutls28-dev
        need_library libsystemd libsystemd-dev
        need_debian_python yaml python3-yaml
        need_debian_python markdown_it python3-markdown-it
        ;;
    run)
        need_command redis-server redis-server
        need_command curl curl
        ;;
    test)
        need_command redis-server redis-server
        need_library check check
        need_command curl curl
        need_command openssl openssl
        need_command python3 python3
        need_file /usr/sbin/haproxy haproxy
        need_file /usr/sbin/nginx nginx
        need_file /usr/lib/nginx/modules/ngx_stream_module.so \
            libnginx-mod-stream
        ;;
    tls)
        need_command python3 python3
        need_command openssl openssl
        need_command gnutls-cli gnutls-bin
        ;;
    ctl)
        need_command redis-server redis-server
        need_command python3 python3
        need_command openssl openssl
        need_command script bsdutils
        need_command pgrep procps
        need_command setpriv util-linux
        ;;
    rotate)
        need_file /usr/sbin/logrotate logrotate
        ;;
    nemesis)
        need_command redis-server redis-server
        need_command python3 python3
        need_command openssl openssl
        need_file /usr/sbin/haproxy haproxy
        ;;
    php)
        need_command php php-cli
        [ -n "$(php -r 'echo extension_loaded("curl");' 2>/dev/null)" ] ||
            missing+=(php-curl)
        need_file /usr/share/php/Psr/Log/autoload.php php-psr-log
        need_file /usr/share/php/Symfony/Component/Lock/autoload.php \
            php-symfony-lock
        ;;
    ruby)
        need_command ruby ruby
        [ -n "$(ruby -e 'gem "activejob"; print 1' 2>/dev/null)" ] ||
            missing+=(ruby-activejob)
        ;;
    java) need_command javac default-jdk-headless ;;
    rust) # the compiler, its lints and the crates of Debian
        need_file /usr/bin/cargo cargo
        need_file /usr/bin/rustdoc rustc
        need_file /usr/bin/cargo-clippy rust-clippy
        need_file /usr/bin/rustfmt rustfmt
        need_file /usr/share/doc/librust-libc-dev librust-libc-dev
        need_file /usr/share/doc/librust-openssl-dev librust-openssl-dev
        need_file /usr/share/doc/librust-serde-json-dev librust-serde-json-dev
        need_file /usr/share/doc/librust-tokio-dev librust-tokio-dev
        ;;
    examples) # the tool chains of api/clients/examples/
        need_command curl curl
        need_command jq jq
        need_debian_python requests python3-requests
        [ -n "$(ruby -e 'gem "webrick"; print 1' 2>/dev/null)" ] ||
            missing+=(ruby-webrick)
        compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
            missing+=(postgresql)
        need_file /usr/sbin/mariadbd mariadb-server
        need_file /usr/sbin/lighttpd lighttpd
        need_file /usr/lib/lighttpd/mod_webdav.so lighttpd-mod-webdav
        ;;
    go) # the client for Go, and its race detector
        need_command go golang-go
        need_command cc gcc
        need_command setpriv util-linux
        ;;
    redigo) # what the Go client is measured beside
        need_file /usr/share/gocode/src/github.com/gomodule/redigo \
            golang-github-gomodule-redigo-dev
        ;;
    phpredis) # what the PHP client is measured beside, with Symfony
        [ -n "$(php -r 'echo extension_loaded("redis");' 2>/dev/null)" ] ||
            missing+=(php-redis)
        ;;
    rubyredis) # what the Ruby client is measured beside
        [ -n "$(ruby -e 'gem "redis"; print 1' 2>/dev/null)" ] ||
            missing+=(ruby-redis)
        ;;
    mutate)
        need_debian_python clang.cindex python3-clang
        need_command objcopy binutils
        need_command prlimit util-linux
        ;;
    readme)
        need_command curl curl
        need_command python3 python3
        need_command openssl openssl
        need_command jq jq
        ;;
    lint)
        need_command python3 python3
        need_command shellcheck shellcheck
        need_command clang-format clang-format
        need_command mandoc mandoc
        need_command man man-db
        need_debian_python yaml python3-yaml
        need_debian_python jsonschema python3-jsonschema
        need_debian_python ensurepip python3-venv
        need_file /usr/sbin/haproxy haproxy
        need_file /usr/sbin/nginx nginx
        ;;
    openapi)
        need_command python3 python3
        need_command pip3 python3-pip
        need_debian_python ensurepip python3-venv
        ;;
    generators) # what clients generated for these languages need
        need_command java default-jre-headless
        need_command javac default-jdk-headless
        need_file /usr/share/java/geronimo-annotation-1.3-spec.jar \
            libgeronimo-annotation-1.3-spec-java
        need_command go golang-go
        need_command php php-cli
        [ -n "$(php -r 'echo extension_loaded("curl");' 2>/dev/null)" ] ||
            missing+=(php-curl)
        [ -n "$(php -r 'echo extension_loaded("mbstring");' 2>/dev/null)" ] ||
            missing+=(php-mbstring)
        need_file /usr/share/php/GuzzleHttp/autoload.php php-guzzlehttp-guzzle
        need_command ruby ruby
        need_file /usr/share/doc/ruby-typhoeus ruby-typhoeus
        need_file /usr/share/doc/ruby-marcel ruby-marcel
        need_command node nodejs
        need_command tsc node-typescript
        need_debian_python ensurepip python3-venv
        ;;
    kube)
        need_command redis-server redis-server
        need_command openssl openssl
        ;;
    alerts)
        need_command redis-server redis-server
        need_command promtool prometheus
        need_debian_python yaml python3-yaml
        ;;
    node)
        need_command node nodejs
        need_command npm npm
        need_command tsc node-typescript
        need_command unshare util-linux
        need_file /usr/sbin/haproxy haproxy
        need_file /usr/sbin/nginx nginx
        ;;
    page)
        need_command chromium chromium
        need_command chromedriver chromium-driver
        need_file /usr/share/fonts/truetype/dejavu fonts-dejavu-core
        ;;
    analyse)
        need_command clang-tidy clang-tidy
        need_command cppcheck cppcheck
        ;;
    fuzz)
        need_command clang clang
        runtime=libclang_rt.fuzzer-$(uname -m).a
        need_file "$(clang -print-file-name="$runtime" 2>/dev/null)" \
            libclang-rt-dev
        ;;
    bench)
        need_command redis-server redis-server
        need_command curl curl
        need_debian_python matplotlib python3-matplotlib
        ;;
    bench-node)
        need_command node nodejs
        need_file /usr/share/nodejs/redis node-redis
        ;;
    profile)
        need_command perf linux-perf
        need_command addr2line binutils
        need_file /usr/lib/debug/.build-id libc6-dbg # names its functions
        ;;
    peers) # and a newer cargo than Debian 12 has
        need_command etcd etcd-server
        ;;
    model)
        need_command gcc gcc
        need_command spin spin
        ;;
    deb)
        need_file /usr/share/build-essential build-essential
        need_command dh debhelper
        need_command lintian lintian
        ;;
    debootstrap)
        need_command debootstrap debootstrap
        need_file /usr/share/keyrings/debian-archive-keyring.gpg \
            debian-archive-keyring
        ;;
    fresh)
        need_command git git
        need_command curl curl
        ;;
    clients) # what builds their packages
        need_debian_python ensurepip python3-venv
        need_command npm npm
        need_command gem ruby
        need_command javac default-jdk-headless
        need_file /usr/bin/cargo cargo
        need_file /usr/share/doc/librust-libc-dev librust-libc-dev
        need_file /usr/share/doc/librust-openssl-dev librust-openssl-dev
        need_file /usr/share/doc/librust-serde-json-dev librust-serde-json-dev
        ;;
    release) # what makes trees, indexes and images
        need_group clients
        need_group debootstrap
        need_command git git
        need_command jq jq
        need_command gpg gnupg
        need_command apt-ftparchive apt-utils
        need_command mmdebstrap mmdebstrap
        need_command buildah buildah
        ;;
    *)
        echo "deps: unknown group: $1" >&2
        exit 2
        ;;
    esac
}

for group in "$@"; do
    need_group "$group"
done
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
    echo "Missing, by the names of their Debian packages:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    root=(sudo)
fi
echo "Installing Debian packages: ${missing[*]}"
# Debian starts the servers that it installs, unless this file forbids that.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap '"${root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
    "${root[@]}" chmod 755 $policy
fi
install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${missing[@]}")
"${install[@]}" 2>/dev/null || {
    "${root[@]}" apt-get update -qq
    "${install[@]}"
}
