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
