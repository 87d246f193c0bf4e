#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Searches the models of this folder exhaustively with Spin. With all rules on
# nothing may go wrong; with a rule switched off, what its story tells must;
# and the goals must be within reach, or the models would prove nothing.
#   run.sh [model…]
# SHORT=1: the short form, for each change: with the bounds in the last column
# of the table. It, too, catches each rule that is switched off and reaches each
# goal. At night all is searched.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/checks.sh
. tests/lib/checks.sh

wanted=("$@")
build=$PWD/build/model
mkdir -p "$build"
work=$(mktemp -d "$build/XXXXXX")

clean_up() {
    rm -rf "$work"
}
checks_begin clean_up
check_or_end "Spin is installed" scripts/deps.sh model
renice -n 10 $$ >/dev/null

# Leaves in the row's folder what search.sh printed, how long it took, and last
# the line that tells what it found.
search() { # folder model macro…
    local folder=$1 start
    shift
    start=$(date +%s%N)
    mkdir "$folder"
    tests/model/search.sh "$@" >"$folder/output" 2>&1 || true
    echo "$((($(date +%s%N) - start) / 100000000))" >"$folder/tenths"
    tail -n 1 "$folder/output" >"$folder/new"
    mv "$folder/new" "$folder/found"
}

compare() { # folder expected found
    [ "$2" = "$3" ] || {
        cat "$1/output"
        return 1
    }
}

print() { # model "macro…" bounds story expected found states seconds
    printf '%-11s · %-35s · %-18s · %-44s · %-14s · %-14s · %7s · %4s' "$@"
}

# The rows whose turn it is, as far as they are done.
show() {
    local folder found states seconds
    while [ -e "$work/$shown/found" ]; do
        folder=$work/$shown
        found=$(<"$folder/found")
        states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' \
            "$folder/output")
        states=$(printf %.0f "${states:-0}")
        seconds=$(printf %.1f "$(<"$folder/tenths")e-1")
        check "$(print "${models[$shown]}" "${macros[$shown]:--}" \
            "${bounds[$shown]:-all}" "${stories[$shown]}" \
            "${expected[$shown]}" "$found" "$states" "$seconds")" \
            compare "$folder" "${expected[$shown]}" "$found"
        shown=$((shown + 1))
    done
}

# As many at a time as there are processors.
rows() {
    local model macro story result limit names=() limits=() of=
    while IFS='|' read -r model macro story result limit; do
        read -r model <<<"$model"
        if [ ${#wanted[@]} -gt 0 ] &&
            [[ " ${wanted[*]} " != *" $model "* ]]; then
            continue
        fi
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
            wait -n || true
            show
        done
        read -ra names <<<"$macro"
        [ "$model" = "$of" ] || limits=()
        of=$model
        [ -z "${SHORT:-}" ] || [ -z "$limit" ] || read -ra limits <<<"$limit"
        [ "${limits[*]}" != all ] || limits=()
        search "$work/${#models[@]}" "$model" "${names[@]}" "${limits[@]}" &
        models+=("$model")
        macros+=("${names[*]}")
        bounds+=("${limits[*]}")
        read -r "stories[${#stories[@]}]" <<<"$story"
        read -r "expected[${#expected[@]}]" <<<"$result"
    done
    wait
    show
    check_or_end "all were searched" [ "$shown" -eq "${#models[@]}" ]
}

models=() macros=() bounds=() stories=() expected=() shown=0
if [ -n "${SHORT:-}" ]; then
    echo "short form: smaller bounds; \`make model\` has them all"
else
    echo "full form: all bounds"
fi
echo "      $(print model "rule switched off" bounds story expected found \
    states s)"
# The last column: macros of the short form. A row without them has those of the
# row above; models begin with all bounds. A rule that is switched off is caught
# with the bounds that one of its "all rules on" has, or with smaller ones.
rows <<'END'
admission   |                 | all rules on | nothing | FAULTS=2
admission   | REACH_GRANT     | goal: a lock is granted               | is_reached
admission   | REACH_READMIT   | goal: admitted again after a loss     | is_reached
admission   | NO_ADMIT_CHECK ONLY_RESTARTS | 5 restarted, votes before the heartbeat | two_holders
admission   | ADMIT_BY_RUN_ID | 6 FLUSHALL keeps the run_id           | two_holders
admission   | NO_ADMIT_RUN_ID | 5 restarted with an old dump          | two_holders
admission   | UPTIME_TIMER    | 7 uptime lies after a clock step      | two_holders
admission   | SHORT_TIMER     | 5 kept away for less than max TTL     | two_holders
admission   | TIMER_BY_RUN_ID | 25 this run_id was watched long ago   | two_holders
admission   | NO_QUARANTINE_NONCE   | 26 lost twice, one loss unseen        | two_holders
admission   | BLIND_ADMIT     | 26 an ADMIT still lies in a socket    | two_holders
admission   | OLD_QUARANTINE_REVOKE | 26 revoked, but the same quarantine         | two_holders
admission   | NO_QUARANTINE_RUN_ID  | 26 an old dump brings its quarantine back   | two_holders
first_start |                 | all rules on | nothing | FAULTS=4
first_start | REACH_START     | goal: first start                     | is_reached
first_start | SET_IF_ABSENT   | 27 set-if-absent does not help        | two_holders
first_start | NO_SECOND_PROBE  | 27 no second probe                     | two_holders
first_start | NO_HOLD         | 27 no hold: a vote of before counts   | two_holders
first_start | ALL_LOST        | all rules on, all nodes lost          | nothing
first_start | ALL_LOST ANY_NODES | 28 probes like a first start        | two_holders
first_start | ALL_LOST SAID_YES | all rules on, the operator's word   | nothing
first_start | ALL_LOST SAID_YES NO_MEMORY | 28 by who saw an admission | two_holders
first_start | FLUSHED         | all rules on, all nodes flushed       | nothing
first_start | FLUSHED NO_OBJECTION | 46 a server watches, and is silent | two_holders
first_start | FLUSHED SHORT_HOLD | 46 it has no time to object        | two_holders
first_start | SHARED_QUARANTINES SET_IF_ABSENT LOSSES=0 | 27 an old view | two_holders | FAULTS=1
memory      |                 | all rules on | nothing | FAULTS=3 OLD_COPY
memory      | REACH_READMIT   | goal: back, durable, with its lock    | is_reached
memory      | NO_HIGH_WATER        | 29, 41 an old file, a backup, a copy  | two_holders
memory      | NO_WITNESS      | 43 the server that knew is restarted  | two_holders
memory      | ONE_HEARTBEAT   | 42 others had no time to tell         | two_holders
memory      | NO_NAME         | 37, 38 memory of another node         | two_holders
memory      | NO_REPLID       | 41 an old copy under the same run_id  | two_holders
memory      | NO_EVICTED      | 40 locks are evicted, the state is not | two_holders
memory      | NO_DURABLE      | 5, 39 a file that lost its tail       | two_holders
memory      | BLIND_READMIT   | 26 a READMIT still lies in a socket   | two_holders
memory      | RAISE_HIGH_WATER     | 43 a generation from now is reached again   | two_holders
memory      | UNWITNESSED     | what remains: only the dead knew      | two_holders
memory      | STEPS           | all rules on, and clocks step | nothing | FAULTS=4 LATE_COPY
memory      | NO_CLOCK        | 11 restarted, and its clock stepped   | two_holders
memory      | NO_DURABLE_FIELD | 29 it is durable now, but was not    | two_holders
memory      | NO_DURABLE_ZERO | 44 it was durable until CONFIG SET    | two_holders
memory      | READMIT_RAISES  | 44 a late READMIT makes it durable    | two_holders
memory      | ATTACH          | all rules on, replicas attach         | nothing | FAULTS=2 ONE_COPY
memory      | ATTACH REACH_MEND | goal: it votes on with its lock     | is_reached
memory      | ATTACH NO_PROOF   | 74 by a server that saw nothing       | two_holders
memory      | ATTACH NO_ID2     | 74 its second ID is not probed at     | two_holders
memory      | ATTACH NO_INPUT   | 74 nor what it read from a master     | two_holders
memory      | ATTACH NO_WINDOW  | 74 that probe was long ago | two_holders | FAULTS=3 ONE_COPY
witness     |                 | all rules on | nothing | FAULTS=3 OLD_COPY
witness     | REACH_READMIT   | goal: back, durable, with its lock    | is_reached
witness     | EMPTY_WITNESS   | 43 an emptied node as a witness       | two_holders
witness     | WRITE_ADMITTED  | 43 one that waits is told nothing     | two_holders
witness     | ONE_HEARTBEAT   | 42 others had no time to tell         | two_holders
witness     | ONE_OTHER       | 43 the other one knows                | two_holders
witness     | WAIT_OWN        | 43 a witness that has just come back  | two_holders
witness     | UNWITNESSED     | what remains: only the dead knew      | two_holders
loss        |                 | all rules on | nothing | FEW LOSERS=2 COMMON=1
loss        | REACH_ADMIT     | goal: admitted again                  | is_reached
loss        | REACH_GRANT     | goal: a lock with its new vote        | is_reached
loss        | UNTOLD          | 5 probes do not tell incarnations            | two_holders
loss        | NO_VOTE_INCARNATIONS  | 5 old votes count                     | two_holders
loss        | OTHERS=1        | 53 one other may be asked             | two_holders
loss        | ANY_COUNTS      | 53 those who wait are asked           | two_holders
loss        | NO_ADMIT_INCARNATIONS | 5 who comes back knows of nobody      | two_holders
loss        | EQUAL_INCARNATIONS    | 25 lost again, under the same incarnation   | two_holders
loss        | LOSERS=1        | all rules on, one node forgets         | nothing | all
loss        | BLIND_ADMIT     | 26 an ADMIT still lies in a socket    | two_holders | LOSERS=1
loss        | EXTENDS FAULTS=1 | all rules on, and extends            | nothing | FEW LOSERS=1
loss        | EXTENDS EXTENDS_UNTOLD FAULTS=1 | 53 only acquires tell | two_holders
loss        | EXTENDS UNTIL_LAST FAULTS=1 | 53 a shorter one is told  | two_holders
loss        | MACHINES=4 FAULTS=1 | all rules on, a name moves | nothing | FEW LOSERS=2 COMMON=1
loss        | MACHINES=4 FAULTS=1 OUTDATED | 45 the old one is asked  | two_holders
loss        | MACHINES=4 FAULTS=1 NO_VOTE_INCARNATIONS | 45 the old one votes | two_holders
loss        | MACHINES=5 FEW LOSERS=2 FAULTS=1 | all rules on, two names move | nothing | all
loss        | MACHINES=5 MOVED=1 FAULTS=0 | all rules on, three machines, one name | nothing | all
loss        | MACHINES=5 MOVED=1 FAULTS=0 NO_VOTE_INCARNATIONS | 45 the first votes | two_holders
loss        | CROSSED         | all rules on, two servers cross names | nothing        | FAULTS=1
loss        | CROSSED FAULTS=1 NO_NAME | 37 it votes under another name | two_holders
loss        | NODES=5 FEW LOSERS=2 ENDLESS | all rules on, five nodes | nothing | FAULTS=1
loss        | NODES=5 FEW LOSERS=2 ENDLESS OTHERS=2 | 53 two others of four | two_holders
loss        | NUMBERS FEW LOSERS=2 | all rules on, numbers            | nothing        | FAULTS=2
loss        | NUMBERS FEW LOSERS=2 NO_MIN_TOKEN | 8 it takes lower numbers  | falls_back
loss        | NUMBERS FEW LOSERS=2 TOP_ONLY | 8 a min_token is not told on  | falls_back
names       | LOSERS=13       | all rules on, 3 names become 5        | nothing | FAULTS=0
names       | LOSERS=13 REACH_GRANT | goal: a lock under the new names | is_reached
names       | OUTSIDE         | all rules on, two old names stay out  | nothing | all
names       | OUTSIDE BY_Q    | 65 time alone is waited for           | two_holders
names       | OUTSIDE OTHER_WORD | 65 the word was for another epoch  | two_holders
names       | BOTH_NEW LOSERS=8 | all rules on, both ask new servers  | nothing
names       | SHRINKS LOSERS=4 | all rules on, 5 become 3 | nothing
names       | SHRINKS LOSERS=4 UNTOLD | 59 old promises are not waited for | two_holders
names       | SHRINKS LOSERS=4 ANY_TELLS | 59 a node that lost data tells | two_holders
names       | SHRINKS LOSERS=4 FEW | 59 no majority of the old names tells | two_holders
names       | SHRINKS LOSERS=4 MEMORY | 65 who lost it since is counted | two_holders
names       | SHRINKS LOSERS=4 OLD_LIFE | 65 what another life had is told | two_holders
names       | SHRINKS LOSERS=4 BY_TIME | what remains: an old server, cut off | two_holders
names       | SHRINKS BOTH_NEW LOSERS=4 | all rules on, both ask new servers | nothing
names       | SHRINKS BOTH_NEW LOSERS=4 AT_ONCE | 65 one that lost data is admitted | two_holders
names       | SHRINKS LOSERS=4 TWO_SERVERS | all rules on, two servers | nothing | FAULTS=0
names       | SHRINKS MOVES LOSERS=1 | all rules on, a name had moved | nothing
names       | SHRINKS MOVES LOSERS=1 NO_OLD_INCARNATION | 59 its old machine tells | two_holders
names       | RIVALS LOSERS=2 FIGHTS | all rules on, two lists of one epoch | nothing
names       | RIVALS LOSERS=2 REACH_GRANT=2 | goal: a lock under the second list | is_reached
names       | RIVALS LOSERS=2 FEW | 65 of four names, each list has two | two_holders
names       | RIVALS LOSERS=2 ANY_QUARANTINE | 65 quarantines of the other list count | two_holders
names       | RIVALS LOSERS=2 FIGHTS TAKES_EQUAL | 65 one takes it from the other | livelock
names       | RIVALS APART TAKES_EQUAL BACK_EQUAL | 65 and takes it back | two_holders
names       | LATER LOSERS=4 | all rules on, a higher epoch comes by | nothing
names       | LATER LOSERS=4 NO_OTHERS | 65 the first list has counted, too | two_holders
names       | LATER LOSERS=4 NO_PASSED | 65 its quarantines are not known any more | two_holders
names       | NEXT            | all rules on, one list after the other | nothing
names       | NEXT REACH_GRANT=2 | goal: a lock under the second list | is_reached
names       | NEXT REACH_DEAD | goal: nodes tell that the first are dead | is_reached
names       | JOINS           | all rules on, two of one epoch become one | nothing
names       | JOINS REACH_GRANT | goal: a lock under the one they become | is_reached
names       | JOINS COUNTED_ONLY | 65 one's promises are not waited for | two_holders
names       | LOWER           | all rules on, a lower epoch is in use | nothing
names       | LOWER LOWER_DEAD | 65 it is taken for dead              | two_holders
names       | THIRD           | all rules on, three lists | nothing | FAULTS=0 APART
names       | THIRD ONE_PASSED | 65 the quarantines before are not known | two_holders
names       | BACK            | all rules on, back to the old names | nothing
names       | BACK BACK_FEW   | 65 a majority of the old names is enough | two_holders
names       | BACK LEFT REACH_GRANT=2 | goal: back before a new one votes | is_reached
names       | BACK LEFT REACH_GRANT=2 NO_BACK | 65 quarantines that were replaced count | nothing
names       | IN_USE          | all rules on, old servers go on | nothing
names       | IN_USE REACH_GRANT | goal: the next server takes the rest | is_reached
names       | IN_USE REACH_GRANT NO_DEAD | 65 nobody tells who is dead | nothing
names       | IN_USE SHRINKS WORD | all rules on, a wrong word | nothing
names       | IN_USE SHRINKS WORD WORD_IS_DEAD | 65 it is told as proof | two_holders
five        |                 | all rules on                          | nothing
five        | REACH_READMIT   | goal: all are back                    | is_reached
five        | ONE_MAY_BE_AWAY | 41 the only one that knows is away    | two_holders
five        | ANY_THERE       | 41 an emptied one is asked            | two_holders
five        | MOST_ARE_BAD    | what remains: most lost data     | two_holders
clocks      |                 | all rules on | nothing | T=1 FAULTS=2
clocks      | REACH_READMIT   | goal: revoked, and admitted again     | is_reached
clocks      | NO_STEP_TEST    | 11 steps are not probed for           | two_holders
clocks      | TRUST_AT_SIGHT  | 11 stepped before the server began    | two_holders
clocks      | SHORT_WATCH     | 11 watched for less than max TTL      | two_holders
clocks      | POINTS          | 35 a reply that lay there             | revokes_honest
clocks      | SUSPECT_NOBODY  | rule 9: the server's own clock stepped | revokes_honest
clocks      | SPREAD          | all rules on, clocks apart            | nothing
clocks      | SPREAD BASELINE_PER_CONNECTION | 30 learned anew        | two_holders
clocks      | SPREAD NO_HISTORY | what remains: steps to the others   | two_holders
fence       |                 | all rules on                          | nothing        | W=1
fence       | REACH_RETURN    | goal: votes again, after a loss   | is_reached
fence       | NO_COMPARE      | 8 a number in the server's memory     | falls_back
fence       | NODE_COUNTER    | 8 a counter on each node              | falls_back
fence       | NO_WINDOW       | 9 the server's clock was ahead once   | falls_back
fence       | NO_SPREAD       | 34 clocks far apart, and one steps    | falls_back
fence       | FAR_NODE        | what remains: steps to a wrong clock  | falls_back
fence       | LEAST_Q         | all rules on, Q is 3 W and a tick     | nothing        | all
fence       | SHORT_Q         | 34 away for 3 W                       | falls_back
replication |                 | all rules on                          | nothing
replication | REACH_CREATE    | goal: created behind the release      | is_reached
replication | REACH_EARLY      | goal: closed, and the key came later  | is_reached
replication | REACH_CLOSE     | goal: young, and asked once           | is_reached
replication | PARTS           | all rules on, a part is missing       | nothing
replication | PARTS ANY_PART  | 50 the part that is there is released | leftover
replication | OTHERS          | all rules on, others come by          | nothing
replication | OTHERS OVERWRITES | it minds nobody                     | overwritten
replication | NO_GATE         | 50 it probes before the acquire ends   | leftover
replication | NO_WAIT         | 50 it probes again at once             | leftover
replication | NO_CHECK         | 50 it does not probe again             | leftover
replication | NO_DEADLINE     | 50 it lay in a socket                 | leftover
replication | WINDOW=3        | 50 it lay there for longer than T     | leftover
replication | NO_END          | 50 a fill comes after all askings     | leftover
replication | NO_CANCEL       | 50 the fill is sent after the release | leftover
replication | FROM_RELEASE    | 50 extended before a young release    | leftover
replication | LATE            | 50 a release that takes T             | leftover
replication | EMPTY           | 50 a majority without the key in time | leftover
replication | ONCE            | 50 a late acquire                     | leftover
replication | SOME            | 50 all had the key, but were late     | leftover
replication | SAME            | 50 young, but late: created elsewhere | leftover
replication | TWICE           | 50 created between two askings        | leftover
replication | AT_ONCE         | 50 a late acquire, asked before       | leftover
replication | FIXED           | 50 a release longer than 1.5 T        | leftover
replication | MOST_BREAK      | what remains: without a majority      | leftover
replication | SPREADS=2 T=1   | all rules on, two spreads at once     | nothing | SMALL
replication | SPREADS=2 SMALL NO_TOMB | 50 set and deleted in between | leftover
replication | SPREADS=2 SMALL TOMB=3 | 50 the same, less than 4 T ago | leftover
replication | SPREADS=2 SMALL LATE_CHECK | 50 the same, probes far apart | leftover
replication | FORCED          | all rules on, released by force       | nothing
replication | FORCED NO_BURY  | a creation that had probed before     | revived
replication | SMALL FORCED    | all rules on, two spreads at once     | nothing
replication | SMALL FORCED TOMB=2 | a tombstone that ends too soon    | revived
readers     |                 | all rules on                          | nothing
readers     | REACH_BOTH      | goal: two readers, the lower one last | is_reached
readers     | REACH_WRITER    | goal: a writer after a reader         | is_reached
readers     | REACH_DOWNGRADE | goal: downgraded, beside two readers  | is_reached
readers     | REACH_REPLICATION    | goal: a reader, replicated beside another | is_reached
readers     | FEW NO_CHECK    | 8 a reader older than a writer        | falls_back
readers     | FEW NO_RECORD   | 8 a writer older than a reader        | falls_back
readers     | OLD_RECORD      | 8 a reader's record outlives a writer | falls_back
readers     | OVER_WRITER     | a reader takes the key from a writer  | two_holders
readers     | OVER_READERS    | a writer takes it from readers        | two_holders
readers     | NO_TOMB         | 50 two replications                        | leftover
readers     | NO_GATE         | 50 an acquire after the probe          | leftover
readers     | ALL_RECORD      | all rules on, and one too many        | nothing
readers     | ALL_RECORD REACH_BOTH | the lower one is refused        | nothing
readers     | LOWERS          | a shorter extend                      | two_holders
readers     | CREATES         | 4 extended after a writer             | falls_back
readers     | NEW_END         | a reader with a shorter TTL came last | two_holders
readers     | OLD_END         | extended, but not its key             | two_holders
readers     | RELEASER_END    | the first to end is released          | two_holders
readers     | KEEPS_END       | the last to end is released           | untidy
readers     | NO_DROP         | others have ended, the last is released | untidy
readers     | ALL_LEAVE       | one of two is released                | two_holders
readers     | TAKES_TIME      | downgraded with a shorter TTL         | two_holders
readers     | TWO_STEPS       | a writer between the two              | two_holders
readers     | LEAVES_KEY      | released before all are downgraded    | leftover
readers     | LEAVES_READER   | released as if not downgraded         | leftover
readers     | WRITES_ON       | the answer takes longer than others do | two_holders
readers     | GOES_BACK       | a downgrade that failed comes late    | two_holders
readers     | UPGRADES        | a reader is extended as a writer      | two_holders
readers     | NODES=4         | what remains: two of four             | two_holders
readers     | NODES=5         | all rules on, five nodes              | nothing | TWO_CLIENTS
readers     | FOUR_CLIENTS    | all rules on, four clients            | nothing | FEW
readers     | FORGETS         | all rules on, nodes forget            | nothing | FEW
readers     | FORGETS FEW NO_MIN_TOKEN | 8 a reader older than what is forgotten | falls_back
epochs      |                 | all rules on                          | nothing
epochs      | OWN_TTL         | 33 max TTL was lowered                | two_holders
epochs      | REACH_CHANGE    | goal: all nodes have changed          | is_reached     | OLD_T=1
epochs      | SOME_QUARANTINES      | 32 admitted before all were quarantined    | two_holders
epochs      | OWN_QUARANTINE        | 32 the last quarantine is not waited for    | two_holders
epochs      | NO_EPOCHS       | 32 two revoke each other              | livelock
epochs      | REACH_GO_ON     | goal: one node changes, the rest go on | is_reached
epochs      | REACH_GO_ON ONE_STOPS | 47 one node stops all           | nothing
epochs      | ADMITS_ON       | 47 admits beside a higher epoch       | two_holders
epochs      | SAME_EPOCH      | all rules on, without a higher epoch  | nothing
epochs      | NO_FINGERPRINT  | 10 two configurations, one permission | two_holders
epochs      | SAME_EPOCH FOREIGN_ELSEWHERE | 10 admits beside a foreign one | two_holders
epochs      | CUT_OFF         | what remains: an old server, cut off  | two_holders
epochs      | SAME_EPOCH ALL_EMPTY | what remains: two race on empty nodes | two_holders
epochs      | FOLLOWS OLD_T=1 | all rules on, servers follow the epoch | nothing      | KEEPS
epochs      | FOLLOWS OLD_T=1 KEEPS REACH_RETURN | goal: the old names, again | is_reached
epochs      | FOLLOWS OLD_T=1 KEEPS STAYS_ESTABLISHED | 60 it need not wait | two_holders
quarantine  |                 | all rules on, quarantines of a wrong epoch | nothing | OLD=3
quarantine  | REACH_CHANGE    | goal: names change in spite of them   | is_reached | KEEPS
quarantine  | KEEPS LATE      | all rules on, and probes come late     | nothing | OLD=3
quarantine  | OLD=3 LOWERS_ALL | 60 replaced on a node that has voted | two_holders
quarantine  | OLD=3 BY_QUARANTINES  | 60 the same, beside a few quarantines       | two_holders
quarantine  | ONE=0 OTHER=1   | all rules on, other servers are asked | nothing | OLD=3
quarantine  | ONE=0 OTHER=2   | all rules on, the same                | nothing
quarantine  | ONE=0 OTHER=3   | all rules on, the same                | nothing
quarantine  | ONE=1 OTHER=2   | all rules on, the same                | nothing
quarantine  | ONE=1 OTHER=3   | all rules on, the same                | nothing
END
