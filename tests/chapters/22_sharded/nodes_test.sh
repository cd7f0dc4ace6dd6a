#!/usr/bin/env bash
# The hybrid on nodes that are namespaces of this machine: the bits of DDP there, and of as many simulated nodes.
#     nodes_test.sh PROGRAM
# Exits with 77 where such nodes cannot be made.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nodes=$here/../../support/nodes.sh
program=$1
command -v mpirun >/dev/null || {
    echo "no mpirun here"
    exit 77
}
"$nodes" 1 true || exit $?

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/chapters/19_checkpoint_failover/images.sh
. "$here/../19_checkpoint_failover/images.sh"
mkdir "$scratch/data"
images "$scratch/data" train 200
images "$scratch/data" t10k 20
run=("$program" --hybrid --quick --batch 8 --data "$scratch/data")
failures=0

# hash NAME COMMAND...: the one hash that both rows of its output have.
hash() {
    local name=$1 said
    shift
    said=$(timeout 120 "$@" 2>&1) || said+=$'\n'"(it ended with $?)"
    if [[ $said == *"Both end in the same bits."* ]]; then
        grep -oE '[0-9a-f]{16}$' <<<"$said" | sort -u
    else
        printf 'FAILED: %s said %s\n' "$name" "$said" >&2
    fi
}
want=$(hash simulated "${run[@]}" --shape 2x2)
[[ $want =~ ^[0-9a-f]{16}$ ]] || failures=1
by_slot=$(hash slots "$nodes" 2 mpirun --host node0:2,node1:2 -np 4 "${run[@]}")
[[ $by_slot == "$want" ]] || { echo "FAILED: two nodes have $by_slot, and simulated ones $want" && failures=1; }
# Dealt out in turn, other ranks are on a node, with other samples: other bits, but one hash.
in_turn=$(hash in_turn "$nodes" 2 mpirun --map-by node --host node0:2,node1:2 -np 4 "${run[@]}")
[[ $in_turn =~ ^[0-9a-f]{16}$ ]] || failures=1
exit "$failures"
