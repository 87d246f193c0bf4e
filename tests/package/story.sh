# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: what an administrator does with the packages, from the
# installation to the purge, in the system that boot.sh has booted.

env_file=/etc/redlockd/redlockd.env
drop_in=/etc/systemd/system/redlockd.service.d

show() { # property of the unit
    inside systemctl show --value --property "$1" redlockd
}

main_pid() { # as the host counts
    inside sh -c "cat /proc/$(show MainPID)/status" 2>/dev/null
}

journal() {
    inside journalctl --unit redlockd --output cat --no-pager
}

expect() { # what expected got
    [ "$2" = "$3" ] || {
        echo "$1: $3 instead of $2"
        return 1
    }
}

# the last answer that holds: NAME=value stands in redlockd.env
configure() { # NAME value
    inside sed -i "/^$1=/d" "$env_file"
    echo "$1=$2" | inside tee -a "$env_file" >/dev/null
}

is_ready() {
    inside curl -fs -o /dev/null http://127.0.0.1:8080/readyz
}

# ---- from the installation to the first lock -----------------------------

installs() {
    inside sh -c 'apt-get install -y -qq --no-install-recommends \
        /root/packages/*.deb'
}

has_user_and_modes() {
    inside getent passwd redlockd | grep ':/nonexistent:/usr/sbin/nologin$' &&
        expect /etc/redlockd 'root redlockd 750' \
            "$(inside stat -c '%U %G %a' /etc/redlockd)" &&
        expect redlockd.env 'root redlockd 640' \
            "$(inside stat -c '%U %G %a' $env_file)"
}

does_not_start_by_itself() {
    expect enabled disabled "$(inside systemctl is-enabled redlockd)" &&
        expect active inactive "$(inside systemctl is-active redlockd)"
}

shows_manual() {
    inside man redlockd | grep -q REDLOCKD_DRAIN_MS &&
        inside man redlockctl | grep -q conflict-exit-code
}

# Where the alerts' links lead; each page that another one links is there.
# shellcheck disable=SC2016 # $name is for the shell inside
brings_its_pages() {
    inside sh -ec 'cd /usr/share/doc/redlockd
        test -e runbook.md -a -e reference/authentication.md -a -e internals/guarantees.md
        test -e examples/haproxy.cfg -a -e examples/nginx.conf
        find . -name "*.md" | while read -r page; do
            grep -oh "]([a-zA-Z/_.-]*[)#]" "$page" | tr -d "()]#" | sort -u |
                while read -r name; do
                    test -z "$name" -o -e "${page%/*}/$name" || {
                        echo "$page: there is no $name"
                        exit 1
                    }
                done
        done'
}

looks_at_its_audit_log_each_hour() {
    expect timer active "$(inside systemctl is-active redlockd-rotate.timer)" &&
        inside systemctl start redlockd-rotate.service &&
        expect result success "$(inside systemctl show -p Result --value \
            redlockd-rotate.service)"
}

# and says why, once
starts_with_nodes_only() {
    ! inside systemctl start redlockd || return
    expect result exit-code "$(show Result)" &&
        expect status 78 "$(show ExecMainStatus)" &&
        expect restarts 0 "$(show NRestarts)" &&
        journal | grep 'REDLOCKD_NODES is not set'
}

# each line of the file that has a default says just that default
takes_its_own_defaults() {
    inside sh -ec "sed 's/^#REDLOCKD/REDLOCKD/; /NODES_FILE/d' $env_file \
        >/run/all.env
        systemd-run --quiet --pipe --wait -p EnvironmentFile=/run/all.env \
            redlockd --check-config"
}

starts() {
    configure REDLOCKD_NODES 127.0.0.1:6379
    # one node that forgets is enough here
    configure REDLOCKD_FIRST_START yes
    configure REDLOCKD_DRAIN_MS 300
    inside systemctl enable --now redlockd &&
        expect active active "$(inside systemctl is-active redlockd)" &&
        expect status 'serving on 127.0.0.1:8080 with 1 nodes' \
            "$(show StatusText)" &&
        eventually 20 is_ready
}

locks() {
    expect run held "$(inside redlockctl run order:42 -- echo held)" &&
        expect audit 'redlockd redlockd 750' \
            "$(inside stat -c '%U %G %a' /var/log/redlockd)"
}

# ---- the sandbox -----------------------------------------------------------

is_confined() {
    local status
    status=$(main_pid)
    echo "$status" | grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):'
    grep -qP '^CapEff:\t0+$' <<<"$status" &&
        grep -qP '^NoNewPrivs:\t1$' <<<"$status" &&
        grep -qP '^Seccomp:\t2$' <<<"$status" &&
        ! grep -qP '^Uid:\t0' <<<"$status"
}

# the filter lets it read its limit of open files
has_connections() {
    local limit connections
    limit=$(inside sh -c "grep 'open files' /proc/$(show MainPID)/limits" |
        awk '{print $5}')
    connections=$(journal | sed -n 's/.*event=start.* connections=//p' | tail -n 1)
    echo "limit $limit, connections $connections"
    [ "$connections" -eq 20000 ] || [ "$connections" -eq $((limit - 64)) ]
}

is_little_exposed() { # systemd counts tenths here, in words there
    inside systemd-analyze --no-pager security --threshold=20 redlockd |
        tail -n 1
}

no_call_was_refused() {
    ! journal | grep -iE 'not permitted|SYS|core-dump|level=error'
}

# ---- its life ---------------------------------------------------------------

reloads() {
    local before
    before=$(show MainPID)
    inside systemctl reload redlockd &&
        eventually 10 is_ready &&
        expect process "$before" "$(show MainPID)" &&
        expect status 'serving on 127.0.0.1:8080 with 1 nodes' \
            "$(show StatusText)"
}

comes_back_after_a_crash() {
    local before
    before=$(show MainPID)
    inside sh -c "kill -SEGV $before"
    eventually 20 is_other_process "$before" && eventually 20 is_ready
}

is_other_process() { # pid
    local now
    now=$(show MainPID)
    [ "$now" != 0 ] && [ "$now" != "$1" ] &&
        [ "$(show ActiveState)" = active ]
}

# with a drain that is longer than TimeoutStopSec=
drains_as_long_as_it_must() {
    configure REDLOCKD_DRAIN_MS 5000
    override $'[Service]\nTimeoutStopSec=1'
    inside systemctl restart redlockd
    inside systemctl stop redlockd
    expect result success "$(show Result)" || return
    configure REDLOCKD_DRAIN_MS 300
    override_end
}

override() { # text
    inside mkdir -p $drop_in
    echo "$1" | inside tee $drop_in/test.conf >/dev/null
    inside systemctl daemon-reload
}

override_end() {
    inside rm -r $drop_in
    inside systemctl daemon-reload
}

# root's file; the service sees a copy
takes_nodes_from_a_credential() {
    echo 127.0.0.1:6379 | inside sh -c \
        'umask 077; cat >/etc/redlockd/nodes; chown root: /etc/redlockd/nodes'
    inside sed -i '/^REDLOCKD_NODES=/d' $env_file
    override '[Service]
LoadCredential=nodes:/etc/redlockd/nodes
Environment=REDLOCKD_NODES_FILE=%d/nodes'
    inside systemctl restart redlockd && eventually 20 is_ready || return
    override_end
    configure REDLOCKD_NODES 127.0.0.1:6379
    inside systemctl restart redlockd && eventually 20 is_ready
}

# Another list of nodes: beside the one that the node knows.
takes_node() { # node key-prefix
    local status=0
    configure REDLOCKD_NODES "$1"
    configure REDLOCKD_KEY_PREFIX "$2"
    inside systemctl restart redlockd && eventually 20 is_ready || status=1
    configure REDLOCKD_NODES 127.0.0.1:6379
    configure REDLOCKD_KEY_PREFIX ''
    return "$status"
}

# the sandbox has no netlink, which getaddrinfo(3) asks for addresses
looks_up_names() {
    takes_node localhost:6379 name:
}

# which only the group redis may use, as docs/deploy/debian.md tells
takes_a_socket() {
    ! takes_node unix:///run/redis/redis-server.sock socket: || return
    override $'[Service]\nSupplementaryGroups=redis'
    takes_node unix:///run/redis/redis-server.sock socket: || return
    override_end
}

# port 443, as docs/deploy/debian.md tells
takes_a_low_port() {
    configure REDLOCKD_LISTEN 127.0.0.1:443
    override '[Service]
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
PrivateUsers=no'
    inside systemctl restart redlockd &&
        inside curl -fs -o /dev/null http://127.0.0.1:443/livez || return
    override_end
    configure REDLOCKD_LISTEN 127.0.0.1:8080
    inside systemctl restart redlockd && eventually 20 is_ready
}

# ---- upgrade, removal --------------------------------------------------------

# The same files with a higher version.
upgrades() {
    local before file
    before=$(show MainPID)
    file=$(inside sha256sum $env_file)
    inside sh -ec 'cd /root
        dpkg-deb --raw-extract packages/redlockd_*.deb next
        sed -i "s/^Version: .*/&+next/" next/DEBIAN/control
        echo "# a new line" >>next/etc/redlockd/redlockd.env
        dpkg-deb --build next next.deb
        apt-get install -y -qq ./next.deb \
            -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold'
    expect redlockd.env "$file" "$(inside sha256sum $env_file)" &&
        inside grep -q '^# a new line' $env_file.dpkg-dist &&
        expect enabled enabled "$(inside systemctl is-enabled redlockd)" &&
        eventually 20 is_other_process "$before" && eventually 20 is_ready &&
        has_user_and_modes
}

# ---- several processes on a port ---------------------------------------------

pids_of_both() {
    inside systemctl show --value --property MainPID redlockd@1 redlockd@2 |
        grep -x '[1-9][0-9]*' | sort -u
}

are_two_others() { # pids
    [ "$(pids_of_both | grep -cvxF "${1:-none}")" = 2 ]
}

shares_its_port() {
    inside systemctl disable --now redlockd &&
        inside systemctl enable --now redlockd@1 redlockd@2 &&
        eventually 20 are_two_others '' && eventually 20 is_ready &&
        expect redlockd inactive "$(inside systemctl is-active redlockd)"
}

# each of them, but not the unit that they replace
upgrades_both() {
    local before
    before=$(pids_of_both)
    inside apt-get install -y -qq --reinstall /root/next.deb \
        -o Dpkg::Options::=--force-confold &&
        eventually 20 are_two_others "$before" && eventually 20 is_ready &&
        expect redlockd inactive "$(inside systemctl is-active redlockd)"
}

# what only one of them has
takes_options_of_one() {
    echo "REDLOCKD_LISTEN=127.0.0.1:8081" |
        inside tee /etc/redlockd/redlockd@2.env >/dev/null
    inside systemctl restart redlockd@2 &&
        inside curl -fs -o /dev/null http://127.0.0.1:8081/readyz &&
        inside curl -fs -o /dev/null http://127.0.0.1:8080/readyz
}

removes() {
    inside apt-get remove -y -qq redlockd redlockctl &&
        inside test -e $env_file &&
        ! inside test -e /usr/bin/redlockd &&
        ! is_ready
}

# The user stays, as README.Debian says.
purges() {
    local left
    inside apt-get purge -y -qq redlockd redlockctl || return
    left=$(inside find / -xdev -name '*redlock*' \
        -not -path '/root/*' -not -path '/var/cache/man/*')
    expect files '' "$left" && inside getent passwd redlockd
}

installs_again() {
    installs && has_user_and_modes && does_not_start_by_itself &&
        ! inside test -e $env_file.dpkg-dist
}

story() { # release
    check_or_end "$1: installs" installs
    check "$1: a user, and modes that hide passwords" has_user_and_modes
    check "$1: does not start by itself" does_not_start_by_itself
    check "$1: shows its manual pages" shows_manual
    check "$1: brings its pages" brings_its_pages
    check "$1: looks at its audit log each hour" looks_at_its_audit_log_each_hour
    check "$1: does not start without nodes, and says why" starts_with_nodes_only
    check "$1: redlockd.env shows defaults that are taken" takes_its_own_defaults
    check_or_end "$1: starts and is ready" starts
    check "$1: redlockctl gets a lock" locks
    check "$1: has no capabilities and few system calls" is_confined
    check "$1: has as many connections as files" has_connections
    check "$1: systemd finds it little exposed" is_little_exposed
    check "$1: reloads" reloads
    story_of_files "$1"
    check "$1: no system call was refused" no_call_was_refused
    check "$1: comes back after a crash" comes_back_after_a_crash
    check "$1: is not killed in a long drain" drains_as_long_as_it_must
    check "$1: takes its nodes from a credential" takes_nodes_from_a_credential
    check "$1: looks up names" looks_up_names
    check "$1: takes a socket of the group redis" takes_a_socket
    check "$1: takes port 443" takes_a_low_port
    check "$1: an upgrade keeps its configuration and restarts it" upgrades
    check "$1: two processes share a port" shares_its_port
    check "$1: an upgrade restarts both" upgrades_both
    check "$1: one of them has options of its own" takes_options_of_one
    check "$1: is removed, but for its configuration" removes
    check "$1: is purged" purges
    check "$1: is installed again" installs_again
}
