#!/usr/bin/env bash
# The chapter's program on nodes that are namespaces of this machine: what leaves a node, counted by its interface, and
# the bits, which are those of as many nodes on one machine.
#     traffic_test.sh PROGRAM          two nodes of two ranks, mapped by slot and by node
#     traffic_test.sh PROGRAM all      four nodes of two as well, 72 ranks, and uneven nodes
# Exits with 77 where such nodes cannot be made.
set -uo pipefail

nodes=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../support" && pwd)/nodes.sh
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
"$nodes" 4 true || exit $?

# on_nodes NAME WORDS...: mpirun WORDS... PROGRAM, which writes NAME.csv.
on_nodes() {
    local name=$1
    shift
    timeout 300 "$nodes" 4 mpirun "$@" "$program" --quick --mebibytes 1 "${wait[@]}" --csv "$scratch/$name.csv" \
        >"$scratch/said" 2>&1 ||
        complain "$name ended with $?"
}

# sent NAME LEVELS FACTOR: arrays of 1 MiB sent at most 1.03 times FACTOR of their bytes, and not less than that.
sent() {
    awk -F, -v name="$1" -v levels="$2" -v factor="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["levels"] == levels && $column["bytes"] == 1048576 {
            found = 1
            share = $column["bytes_leaving_node"] / $column["bytes"]
            printf "%s, %d: %.3f K left a node, %s K must\n", name, levels, share, factor
            if (share < factor || share > 1.03 * factor) exit 1
        }
        END { if (!found) exit 1 }' "$scratch/$1.csv" || complain "$1: what has left a node is not what must"
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
on_nodes 2x2 --host node0:2,node1:2 -np 4
on_nodes by_node --map-by node --host node0:2,node1:2 -np 4
for job in 2x2 by_node; do
    sent "$job" 1 1.5
    sent "$job" 2 1.0
done
same_bits 2x2 shape_2x2 1
same_bits 2x2 shape_2x2 2

# What reaches the memory of one node only says so.
others=$(dirname "$program")
for other in all_reduce bench_all_reduce; do
    if timeout 60 "$nodes" 4 mpirun --host node0:2,node1:2 -np 4 "$others/$other" --quick >"$scratch/said" 2>&1; then
        complain "$other runs on several nodes"
    fi
    grep -q "^error: These ranks are on several nodes, and" "$scratch/said" || complain "$other does not say why it cannot run"
done

if [[ $all ]]; then
    "$program" --quick --mebibytes 1 --shape 4x2 --csv "$scratch/shape_4x2.csv" >"$scratch/said" || complain "--shape 4x2"
    on_nodes 4x2 --host node0:2,node1:2,node2:2,node3:2 -np 8
    sent 4x2 1 1.75
    sent 4x2 2 1.5
    same_bits 4x2 shape_4x2 1
    same_bits 4x2 shape_4x2 2
    on_nodes uneven --host node0:3,node1:1 -np 4
    grep -q "Two levels need the same number of ranks on every node" "$scratch/said" || complain "no word of the uneven nodes"
    sent uneven 1 1.5
    # More ranks than can share the memory of one node.
    # (On a few cores they take their time.)
    wait=(--timeout 120)
    on_nodes 4x18 --host node0:18,node1:18,node2:18,node3:18 -np 72
    grep -q "on 4 nodes of 18 ranks" "$scratch/said" || complain "72 ranks do not sum"
fi

echo "$failures failed"
((failures == 0))
