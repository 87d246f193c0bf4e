#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang-tidy and cppcheck over the C files of FOLDERS (all); each finding is an
# error:
#   analyse.sh COMPILER-FLAG…
# .clang-tidy and tests/.clang-tidy say what is looked for, and why not the
# rest; for cppcheck it stands here. CLANG_TIDY and CPPCHECK name other ones.
# SHORT=1: fewer states of each function, for each change. The analyzer goes
# first where it has not been yet, so it is in all lines all the same, but comes
# there on fewer ways. At night it has four times as many states.
set -euo pipefail

clang_tidy=${CLANG_TIDY:-clang-tidy}
cppcheck=${CPPCHECK:-cppcheck}
read -ra folders <<<"${FOLDERS:-server api cli tests}"
mapfile -t files < <(find "${folders[@]}" -name '*.c' | sort)

# A configuration that cannot be read is no error to clang-tidy 14.
if "$clang_tidy" --dump-config tests/unit/main.c -- 2>&1 |
    grep 'Error parsing'; then
    exit 1
fi

states=()
[ -z "${SHORT:-}" ] ||
    states=(-Xclang -analyzer-config -Xclang max-nodes=50000)

# One file a process: with two, clang-tidy 14 takes each va_list of the second
# for uninitialized. Its count of what system headers hide says nothing.
failed=0
printf '%s\n' "${files[@]}" |
    xargs -P "$(nproc)" -I '{}' \
        "$clang_tidy" --quiet '{}' -- "$@" "${states[@]}" \
        2> >(grep -vE '^[0-9]+ warnings? (generated|treated)' >&2) || failed=1

options=(
    --quiet -j "$(nproc)" --std=c11 --error-exitcode=1 --inline-suppr
    --enable='warning,performance,portability,style'
    --library=posix --library=gnu --library=bsd # bsd: <sys/queue.h>
    --suppress=constParameterCallback # the library gives the signature
    --suppress=redundantContinue      # says that a loop has no body
    --suppress=shadowVariable         # -Wshadow sees scopes, this does not
    --suppress=usleepCalled           # short pauses between two looks
    --suppress=rand_rCalled           # rand() has one seed for all threads
)
# of the flags those that concern this tree; it knows the libraries itself
for flag in "$@"; do
    case $flag in
    -D* | -I[!/]*) options+=("$flag") ;;
    esac
done
"$cppcheck" "${options[@]}" "${folders[@]}" || failed=1

[ $failed = 0 ] || exit 1
echo "analyse: ${#files[@]} files, no finding"
