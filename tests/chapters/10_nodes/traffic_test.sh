#!/usr/bin/env bash
# The chapter's program on hosts that are namespaces of this machine: what leaves a host, counted by its interface, and
# the bits, which are those of as many hosts on one machine.
#     hosts_test.sh PROGRAM          two hosts of two ranks, mapped by slot and by node
#     hosts_test.sh PROGRAM all      four hosts of two as well, 72 ranks, and uneven hosts
# Exits with 77 where such hosts cannot be made.
set -uo pipefail

hosts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../support" && pwd)/hosts.sh
program=$1
all=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
wait=()

complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    cat "$scratch/said"
}

command -v mpirun >/dev/null || {
    echo "no mpirun here"
    exit 77
}
"$hosts" 4 true || exit $?

# on_hosts NAME WORDS...: mpirun WORDS... PROGRAM, which writes NAME.csv.
on_hosts() {
    local name=$1
    shift
    timeout 300 "$hosts" 4 mpirun "$@" "$program" --quick --mebibytes 1 "${wait[@]}" --csv "$scratch/$name.csv" \
        >"$scratch/said" 2>&1 ||
        complain "$name ended with $?"
}

# sent NAME LEVELS FACTOR: arrays of 1 MiB sent at most 1.03 times FACTOR of their bytes, and not less than that.
sent() {
    awk -F, -v name="$1" -v levels="$2" -v factor="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["levels"] == levels && $column["bytes"] == 1048576 {
            found = 1
            share = $column["bytes_leaving_host"] / $column["bytes"]
            printf "%s, %d: %.3f K left a host, %s K must\n", name, levels, share, factor
            if (share < factor || share > 1.03 * factor) exit 1
        }
        END { if (!found) exit 1 }' "$scratch/$1.csv" || complain "$1: what has left a host is not what must"
}

# bits FILE LEVELS: sizes and bits.
bits() {
    awk -F, -v levels="$2" 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["levels"] == levels { print $column["bytes"], $column["bits"] }' "$scratch/$1.csv"
}
same_bits() {  # same_bits A B LEVELS
    [[ -n $(bits "$1" "$3") && $(bits "$1" "$3") == "$(bits "$2" "$3")" ]] ||
        complain "$1 and $2 have different bits on $3 levels: $(bits "$1" "$3") and $(bits "$2" "$3")"
}

"$program" --quick --mebibytes 1 --shape 2x2 --csv "$scratch/shape_2x2.csv" >"$scratch/said" || complain "--shape 2x2"
on_hosts 2x2 --host host0:2,host1:2 -np 4
on_hosts by_node --map-by node --host host0:2,host1:2 -np 4
for job in 2x2 by_node; do
    sent "$job" 1 1.5
    sent "$job" 2 1.0
done
same_bits 2x2 shape_2x2 1
same_bits 2x2 shape_2x2 2

# What reaches the memory of one host only says so.
others=$(dirname "$program")
for other in all_reduce bench_all_reduce; do
    if timeout 60 "$hosts" 4 mpirun --host host0:2,host1:2 -np 4 "$others/$other" --quick >"$scratch/said" 2>&1; then
        complain "$other runs on several hosts"
    fi
    grep -q "^error: These ranks are on several hosts, and" "$scratch/said" || complain "$other does not say why it cannot run"
done

if [[ $all ]]; then
    "$program" --quick --mebibytes 1 --shape 4x2 --csv "$scratch/shape_4x2.csv" >"$scratch/said" || complain "--shape 4x2"
    on_hosts 4x2 --host host0:2,host1:2,host2:2,host3:2 -np 8
    sent 4x2 1 1.75
    sent 4x2 2 1.5
    same_bits 4x2 shape_4x2 1
    same_bits 4x2 shape_4x2 2
    on_hosts uneven --host host0:3,host1:1 -np 4
    grep -q "Two levels take hosts with the same number of ranks" "$scratch/said" || complain "no word of the uneven hosts"
    sent uneven 1 1.5
    # More ranks than can share the memory of one host.
    # (On a few cores they take their time.)
    wait=(--timeout 120)
    on_hosts 4x18 --host host0:18,host1:18,host2:18,host3:18 -np 72
    grep -q "on 4 hosts of 18 ranks" "$scratch/said" || complain "72 ranks do not sum"
fi

echo "$failures failed"
((failures == 0))
