#!/usr/bin/env bash
# The native communicator across nodes, which are namespaces of this machine: the bits of all calls, and the messages
# when a rank is lost or makes another call.
#     across_nodes_test.sh SCENARIO          on two nodes, a lost rank and another call
#     across_nodes_test.sh SCENARIO all      on several sets of nodes, and every kind of failure
# Exits with 77 where such nodes cannot be made.
set -uo pipefail

nodes=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../support" && pwd)/nodes.sh
scenario=$1
all=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    [[ ! -s $scratch/mpirun_said ]] || sed 's/^/  mpirun: /' "$scratch/mpirun_said"
}

# on_nodes NODES NUMBER ARGUMENTS...: runs the scenario with NUMBER ranks on `mpirun --host NODES`, and sets $output and
# the exit code $code. (The scenario writes to a file, because mpirun may lose the last lines of a rank when it ends the
# processes on other nodes.)
on_nodes() {
    local where=$1 ranks=$2
    shift 2
    code=0
    : >"$scratch/said"
    # shellcheck disable=SC2016  # for the other shell
    timeout 120 "$nodes" 4 mpirun --host "$where" -np "$ranks" sh -c 'exec "$@" >>"$0" 2>&1' "$scratch/said" \
        "$scenario" "$@" >"$scratch/mpirun_said" 2>&1 || code=$?
    output=$(cat "$scratch/said")
}

command -v mpirun >/dev/null || {
    echo "no mpirun here"
    exit 77
}
"$nodes" 4 true || exit $?

# ---- The same bits on every set of nodes: those of one ring, or, where all nodes have two ranks, of the shape 2x2

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
calls=(--what "few calls")
[[ ! $all ]] || calls=(--what calls)
"$scenario" --ranks 4 "${calls[@]}" >"$scratch/threads" || complain "threads: $(cat "$scratch/threads")"
"$scenario" --ranks 4 --shape 2x2 "${calls[@]}" >"$scratch/shape" || complain "--shape: $(cat "$scratch/shape")"
"$scenario" --processes 4 "${calls[@]}" >"$scratch/launcher" || complain "launcher: $(cat "$scratch/launcher")"
"$scenario" --processes 4 --shape 2x2 "${calls[@]}" >"$scratch/shaped_launcher" || complain "--shape: $(cat "$scratch/shaped_launcher")"
! cmp -s "$scratch/threads" "$scratch/shape" || complain "one ring and two levels give the same bits: does the shape do anything?"
starts=(launcher)
shaped=(shaped_launcher)
if [[ $all ]]; then
    starts+=(mpirun)
    mpirun --oversubscribe --bind-to none -np 4 "$scenario" "${calls[@]}" >"$scratch/mpirun" || complain "mpirun"
    starts+=("node0,node1,node2,node3" "node0,node1:3")
fi
shaped+=("node0:2,node1:2")
for where in "${starts[@]}" "${shaped[@]}"; do
    [[ $where == node* ]] || continue
    on_nodes "$where" 4 "${calls[@]}"
    echo "$output" >"$scratch/$where"
    [[ $code == 0 ]] || complain "$where ended with $code"
done
if [[ $all ]]; then
    on_nodes node0:2,node1:2 4 --levels 1 "${calls[@]}"
    echo "$output" >"$scratch/one_level"
    starts+=(one_level)
fi
same_bits() {  # same_bits A B
    diff "$scratch/$1" "$scratch/$2" >"$scratch/difference" ||
        complain "$1 and $2 do not give the same: $(head -n 6 "$scratch/difference")"
}
for start in "${starts[@]}"; do same_bits threads "$start"; done
for start in "${shaped[@]}"; do same_bits shape "$start"; done
(($(grep -c '^all_reduce' "$scratch/threads") > 20)) || complain "all calls are not there"
if grep WRONG "$scratch"/*; then complain "wrong results"; fi

# ---- Failures are explained

# expect TEXT CODE: the last job printed TEXT once and no other error, and ended with CODE, or, if CODE is "bad", with
# any code but 0.
expect() {
    [[ $(grep -cF -- "$1" <<<"$output") == 1 ]] || complain "'$1' was not said once, but: $output"
    [[ $(grep -c 'error:' <<<"$output") -le 1 ]] || complain "several errors: $output"
    [[ $2 == bad && $code != 0 && $code != 124 || $2 == "$code" ]] || complain "exit code $code: $output"
}

four=node0,node1,node2,node3
victims=(1)
[[ ! $all ]] || victims=(0 1 3)
for victim in "${victims[@]}"; do
    begin=$SECONDS
    on_nodes $four 4 --what kill --victim "$victim"
    expect "ended without saying why: was it killed?" bad
    ((SECONDS - begin < 15)) || complain "$((SECONDS - begin)) s to end after rank $victim was killed"
done
if [[ $all ]]; then
    # On two levels.
    two=node0:2,node1:2
    on_nodes $two 4 --what kill --victim 3
    expect "ended without saying why: was it killed?" bad
    on_nodes $two 4 --what stop --victim 0 --timeout 2
    expect "is it stopped?" bad
    on_nodes $two 4 --what absent --victim 1 --timeout 2 --catch
    expect "caught: rank " 0
    expect "operation 5, all_reduce sum of 100000 float (\"weights\")" 0
    # Round one ring.
    on_nodes $four 4 --what stop --victim 2 --timeout 2
    expect "is it stopped?" bad
    on_nodes $four 4 --what throw --victim 1
    expect "broken on purpose" 1
    on_nodes $four 4 --what absent --victim 1 --timeout 2 --catch
    expect "caught: rank 2" 0
    expect "was last heard of in operation 5, all_reduce sum of 100000 float (\"weights\")" 0
    diff <("$scenario" --ranks 4 --what "few calls") <(grep -v '^caught' <<<"$output") >/dev/null ||
        complain "the next run is another"
    on_nodes node0:2,node1:2 4 --what size --victim 1 --catch
    expect "all ranks must do the same, in the same order" 0
fi
on_nodes node0:2,node1:2 4 --what call --victim 2 --catch
expect "broadcast of 100000 float from rank 0 (\"weights\")" 0

# Without MPI: the ranks of both nodes are told where rank 0 is.
# shellcheck disable=SC2016  # for the other shell
"$nodes" 2 bash -c 'for rank in 0 1 2 3; do
    env RANK=$rank WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 \
        "$0" --on node$((rank / 2)) "$1" "${@:3}" >"$2/by_variables$rank" 2>&1 &
done; wait' "$nodes" "$scenario" "$scratch" "${calls[@]}"
cp "$scratch/by_variables0" "$scratch/by_variables"
same_bits shape by_variables

echo "$failures failed"
((failures == 0))
