#!/usr/bin/env bash
# The supervised training on four nodes that are namespaces of this machine: a node that dies, a link that is cut
# and healed, folders that are shared and that are not.
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
failures=0
complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# shellcheck source=tests/chapters/19_checkpoint_failover/images.sh
. "$(dirname "${BASH_SOURCE[0]}")/images.sh"
data=$scratch/data
mkdir "$data"
images "$data" train 1000
images "$data" t10k 100

# supervised NAME FOLDER WHEN FAULT OPTIONS...: the training under its supervisor on node0, with ranks on $ranks_on; when
# there are files WHEN, FAULT (words of a shell that is on node0) is done to it. Its output is $output.
ranks_on=node0,node1,node2,node3
supervised() {
    local name=$1 folder=$2
    export WHEN=$3 FAULT=$4 SAID=$scratch/$name.said
    shift 4
    # shellcheck disable=SC2016  # for the other shell
    timeout 300 "$nodes" 4 bash -c '
        sed -i "2i unset DDP_SUPERVISED" /run/agent  # ssh would pass on no variables
        "$@" >>"$SAID" 2>&1 &
        supervisor=$!
        while kill -0 "$supervisor" 2>/dev/null; do
            if [[ -n $FAULT ]] && ls $WHEN >/dev/null 2>&1; then
                eval "$FAULT"
                FAULT=
            fi
            sleep 0.05
        done
        wait "$supervisor"' bash "$program" --hosts "$ranks_on" --folder "$folder" \
        --max-restarts 3 --data "$data" --epochs 5 --batch 8 --every 10 --timeout 3 --learning-rate 0.02 "$@" ||
        complain "$name ended with $?"
    output=$(cat "$scratch/$name.said")
    [[ $output == *"done in "* ]] || complain "$name is not done: $output"
}
expect() {
    grep -qE -- "$1" <<<"$output" || complain "'$1' was not said, but: $output"
}

supervised calm "$scratch/calm-folder" '' ''
expect '^attempt 1: 4 ranks on node0 node1 node2 node3$'
expect 'done in 1 attempt: '

# Everything that runs on a node dies; the node itself comes back at once.
# shellcheck disable=SC2016  # for the other shell
supervised killed "$scratch/killed" "$scratch/killed/checkpoint-*" \
    'for p in $(ip netns pids node2); do kill -9 $p; done'
expect '^attempt 2: 4 ranks on node0 node1 node2 node3$'
[[ ${output##*hash} == "$(sed -n 's/.*hash//p' "$scratch/calm.said")" ]] || complain "another hash after a dead node"

# A node is cut off. It is healed soon, and joins when another node dies. Each node has checkpoints of its own.
export ONE_NODE=$scratch/cut-node0
# shellcheck disable=SC2016  # for the other shell
supervised cut "$scratch/cut-%h" "$scratch/cut-node1/checkpoint-*" '
    ip -n switch link set node3 down
    until grep -q "^attempt 2" "$SAID"; do sleep 0.05; done
    ip -n switch link set node3 up
    touch "$SAID.healed"
    until [[ -n $(find "$ONE_NODE" -name "checkpoint-*.safetensors" -newer "$SAID.healed") ]]; do sleep 0.05; done
    for p in $(ip netns pids node1); do kill -9 $p; done'
expect '^attempt 1 ended after step [0-9]+: '
expect '^attempt 2: 3 ranks on node0 node1 node2$'
expect '^attempt 3: 4 ranks on node0 node1 node2 node3$'
for node in node0 node1 node2 node3; do
    compgen -G "$scratch/cut-$node/checkpoint-*.safetensors" >/dev/null || complain "no checkpoint of $node"
done

# The node with rank 0 has lost its disk: the others give it what they have.
rm -rf "$scratch/cut-node0"
supervised again "$scratch/cut-%h" '' ''
expect '^attempt 1: 4 ranks on node0 node1 node2 node3$'
[[ -e $scratch/cut-node0 ]] || complain "node0 has no folder again"

# Everything stops on the node with rank 0, which writes the checkpoints, and wakes up when the next generation has saved.
ranks_on=node1,node2,node3
supervised calm-3 "$scratch/calm-3" '' ''
calm=$output
# shellcheck disable=SC2016  # for the other shell
supervised stopped "$scratch/stopped" "$scratch/stopped/checkpoint-*" '
    old=$(ip netns pids node1)
    for p in $old; do kill -STOP $p; done
    touch "$SAID.stopped"
    until [[ -n $(find "${SAID%.said}" -name "checkpoint-*" -newer "$SAID.stopped") ]]; do sleep 0.05; done
    for p in $old; do kill -CONT $p; done
    for ((i = 0; i < 200; i++)); do
        left=0
        for p in $old; do [[ ! -e /proc/$p ]] || left=$((left + 1)); done
        ((left)) || break
        sleep 0.05
    done
    echo "$left processes are left of the generation that was stopped" >>"$SAID"'
expect '^0 processes are left of the generation that was stopped$'
expect '^attempt 2: 3 ranks on node1 node2 node3$'
[[ ${output##*hash} == "${calm##*hash}" ]] || complain "another hash after a node that woke up"
[[ $(cat "$scratch/stopped/generation") == 2 ]] || complain "not the second generation, but $(cat "$scratch/stopped/generation")"

echo "$failures failed"
((failures == 0))
