# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: the files that the service reads and writes in its sandbox:
# its audit log, certificates and keys, the auth file. They are kept as
# docs/deploy/debian.md tells, and change while it runs.
#
# env_file comes from story.sh; "$1" is for the shell inside
# shellcheck disable=SC2016,SC2154

files=/etc/redlockd
audit=/var/log/redlockd/audit.log
pid_before=''

unset_option() { # NAME
    inside sed -i "/^$1=/d" "$env_file"
}

# more often than systemd finds normal
restart() {
    inside systemctl reset-failed redlockd
    inside systemctl restart redlockd && pid_before=$(show MainPID)
}

is_same_process() {
    eventually 10 has_reloaded && expect process "$pid_before" "$(show MainPID)"
}

has_reloaded() {
    expect active active "$(inside systemctl is-active redlockd)" &&
        expect status 'serving on 127.0.0.1:8080 with 1 nodes' \
            "$(show StatusText)"
}

keep() { # name: stdin, for root and the service, in place of what was there
    inside sh -ec 'umask 077
        cat >"$1.new"
        chgrp redlockd "$1.new"
        chmod 640 "$1.new"
        mv "$1.new" "$1"' sh "$files/$1"
}

# ---- the audit log ---------------------------------------------------------

has_line() { # text file
    inside grep -q "$1" "$2"
}

writes_an_audit_log() {
    configure REDLOCKD_AUDIT_LOG "$audit"
    restart && eventually 20 is_ready &&
        inside redlockctl run audit:first -- true &&
        has_line '"grant".*audit:first' "$audit" &&
        expect owner 'redlockd redlockd 600' \
            "$(inside stat -c '%U %G %a' "$audit")"
}

rotates_its_audit_log() {
    inside logrotate --force /etc/logrotate.d/redlockd &&
        eventually 10 inside test -e "$audit" &&
        inside redlockctl run audit:second -- true &&
        has_line audit:second "$audit" && ! has_line audit:first "$audit" &&
        has_line audit:first "$audit.1" &&
        ! has_line audit:second "$audit.1" && is_same_process
}

# the service stands still, and has no more lines to write
rotates_without_the_service() {
    inside systemctl stop redlockd
    inside logrotate --force /etc/logrotate.d/redlockd || return
    inside systemctl start redlockd && eventually 20 is_ready &&
        has_line audit:second "$audit.1" &&
        expect first 1 "$(inside sh -c "zgrep -c '\"grant\".*audit:first' $audit.2*")"
}

# ---- TLS ---------------------------------------------------------------------

# A new certificate of an authority of its own: it is the name of both.
make_certificate() { # authority
    inside sh -ec 'umask 077
        mkdir -p "/root/$1"
        cd "/root/$1"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
            -nodes -days 2 -subj "/CN=$1" -keyout key.pem -out cert.pem \
            -addext subjectAltName=DNS:localhost' sh "$1" &&
        inside cat "/root/$1/cert.pem" | keep tls.pem &&
        inside cat "/root/$1/key.pem" | keep tls.key
}

serves() { # authority
    inside curl -fs -o /dev/null --cacert "/root/$1/cert.pem" \
        https://localhost:8080/readyz
}

speaks_tls() {
    make_certificate old || return
    configure REDLOCKD_TLS_CERT $files/tls.pem
    configure REDLOCKD_TLS_KEY $files/tls.key
    restart && eventually 20 serves old && ! is_ready &&
        ! journal | grep tls_key_is_open
}

# Type=notify of Debian 12: the end of the reload is told, not waited for.
reloads_its_certificate() {
    make_certificate new || return
    inside systemctl reload redlockd && eventually 10 serves new &&
        ! serves old && is_same_process
}

keeps_its_certificate_if_the_new_one_is_bad() {
    echo nothing | keep tls.key || return
    inside systemctl reload redlockd &&
        eventually 10 journal_has tls_reload_failed && serves new &&
        is_same_process
}

journal_has() { # text
    journal | grep -q "$1"
}

# ---- who may ask ---------------------------------------------------------------

write_identity() { # token
    local hash
    hash=$(printf %s "$1" | sha256sum)
    echo "story sha256:${hash%% *} lock,read prefix=*" | keep auth
}

status_of() { # token
    inside curl -s -o /dev/null -w '%{http_code}' --cacert /root/new/cert.pem \
        -H "Authorization: Bearer $1" https://localhost:8080/nodes
}

answers() { # status token
    expect "token $2" "$1" "$(status_of "$2")"
}

knows_who_asks() {
    make_certificate new && write_identity first || return
    configure REDLOCKD_AUTH_FILE $files/auth
    restart && eventually 20 serves new && answers 200 first &&
        answers 401 second && ! journal | grep auth_file_open || return
    inside env REDLOCKD_AUTH_TOKEN=first redlockctl run --cacert \
        /root/new/cert.pem --url https://localhost:8080 who -- true &&
        has_line '"identity":"story"' "$audit"
}

reloads_who_may_ask() {
    write_identity second || return
    inside systemctl reload redlockd && eventually 10 answers 200 second &&
        answers 401 first && is_same_process
}

# With the type of unit that newer systemd have: the reload ends when redlockd
# says so.
tells_when_it_has_reloaded() {
    override $'[Service]\nType=notify-reload\nExecReload='
    restart && eventually 20 answers 200 second &&
        write_identity third && inside systemctl reload redlockd &&
        answers 200 third && answers 401 second && is_same_process || return
    override_end
}

is_plain_again() {
    local name
    for name in AUDIT_LOG TLS_CERT TLS_KEY AUTH_FILE; do
        unset_option "REDLOCKD_$name"
    done
    restart && eventually 20 is_ready
}

story_of_files() { # release
    check "$1: writes an audit log" writes_an_audit_log
    check "$1: logrotate rotates the audit log" rotates_its_audit_log
    check "$1: … also of a service that has stopped" rotates_without_the_service
    check "$1: speaks TLS, its key is for root and its group" speaks_tls
    check "$1: reloads its certificate" reloads_its_certificate
    check "$1: keeps it if the new one is bad" \
        keeps_its_certificate_if_the_new_one_is_bad
    check "$1: knows who asks" knows_who_asks
    check "$1: reloads who may ask" reloads_who_may_ask
    [ "$1" = bookworm ] ||
        check "$1: tells systemd when it has reloaded" tells_when_it_has_reloaded
    check_or_end "$1: speaks plain HTTP again" is_plain_again
}
