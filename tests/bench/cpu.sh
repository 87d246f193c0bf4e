# shellcheck shell=bash
# To be sourced.

cpu_us() { # "pid…": user and system time of all of them
    local pid fields sum=0
    for pid in $1; do
        read -r -a fields <<<"$(sed 's/.*) //' "/proc/$pid/stat")"
        sum=$((sum + fields[11] + fields[12]))
    done
    echo $((sum * 1000000 / $(getconf CLK_TCK)))
}

# What the command prints, and what it cost these servers and nodes.
cpu_around() { # "server pid…" "node pid…" command…
    local servers=$1 nodes=$2 server_us node_us out
    shift 2
    server_us=$(cpu_us "$servers")
    node_us=$(cpu_us "$nodes")
    out=$("$@") || return
    echo "$out server_cpu_us $(($(cpu_us "$servers") - server_us))" \
        "nodes_cpu_us $(($(cpu_us "$nodes") - node_us))"
}
