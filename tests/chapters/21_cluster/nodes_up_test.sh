#!/usr/bin/env bash
# `./book cluster up`: the nodes that it makes, and that nothing of them is left.
#     nodes_up_test.sh BIN            nodes, links, exit statuses, bad input, and every way to end
#     nodes_up_test.sh BIN faults     what the book's programs, which are in BIN, say to each fault
#     nodes_up_test.sh BIN mesh       what the axes of a mesh send from one node to the other
# Exits with 77 where nodes cannot be made.
# shellcheck disable=SC2016  # what stands in single quotes is for shells on the nodes
# shellcheck source=tests/chapters/21_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

bin=$1
what=${2:-nodes}

# up ARGUMENTS...: sets $output and the exit status $code.
up() {
    code=0
    output=$(timeout 120 "$root/book" cluster up "$@" 2>&1 </dev/null) || code=$?
}
says() { [[ $output == *"$1"* ]] || complain "'$1' was not said, but: $output"; }
ends_with() { [[ $code == "$1" ]] || complain "exit status $code and not $1: $output"; }

[[ $bin == "$root"/* ]] || skip "the nodes share the folder of the book, and the programs are not in it"
up 1x1 -- true
[[ $code == 0 ]] || skip "${output:-the nodes did not come up within two minutes}"
scratch=$(mktemp -d -p "$bin")  # which the nodes share, unlike /tmp
trap 'rm -rf "$scratch"' EXIT

# ---- What is asked for

bad_input() {  # SENTENCE ARGUMENTS...
    up "${@:2}"
    [[ $output == "cluster: $1" ]] || complain "'cluster up ${*:2}' says: $output"
    ends_with 2
}
test_bad_input() {
    local size shape="up takes nodes x ranks, from 1x1 to 64x64, such as 2x2, but not"
    for size in 2x 0x2 2x0 x2 65x1 1x65 02x2 2x2x2 two; do bad_input "$shape '$size'." "$size" -- true; done
    for size in 100 100MB 0Mbit -1Mbit fast ''; do
        bad_input "--link takes a rate such as 100Mbit or 1Gbit, but not '$size'." 2x2 --link "$size" -- true
    done
    bad_input "--fault takes one of wrong-interface blocked-port unknown-name cut off, but not 'fire'." 2x2 --fault fire -- true
    bad_input "--fault cut needs two nodes at least: with one there is no network." 1x2 --fault cut -- true
    bad_input "up does not take 'true'; it takes HxL, --link RATE, --fault FAULT, and -- before the command." 2x2 true
    bad_input "There is no command: up needs -- and what is to run on the nodes, such as -- ./book run 15." 2x2 --
    up
    says "./book cluster up HxL [--link RATE] [--fault FAULT] -- COMMAND..."
    ends_with 0
    # A machine on which nobody may make a namespace.
    printf '#!/bin/sh\necho "unshare: Operation not permitted" >&2\nexit 1\n' >"$scratch/unshare"
    chmod +x "$scratch/unshare"
    output=$(PATH=$scratch:$PATH "$root/book" cluster up 2x2 -- true 2>&1)
    code=$?
    ends_with 1
    says "cluster: Nodes need root, or a system on which users may make namespaces (unshare: Operation not permitted): call this with sudo."
    rm "$scratch/unshare"
}

# ---- What there is

test_nodes() {
    up 3x2 --link 100Mbit -- bash -c '
        touch /tmp/own /dev/shm/own "$0/shared"
        for node in node0 node1 node2; do
            ssh "$node" "echo \$(hostname): \$(cd /tmp && ls own) \$(ls /dev/shm) \$(ls \"$0\")" 2>/dev/null
            ssh "$node" "ls /sys/class/net; ip -4 -brief address show eth0; tc qdisc show dev eth0" | xargs
        done
        grep -E "localhost|node" /etc/hosts | xargs' "$scratch"
    ends_with 0
    says "node0: own own shared"
    says "node1: shared"
    says "node2: shared"
    says "10.77.0.3/24"
    [[ $(grep -c '^eth0 lo eth0@.* 10.77.0.[123]/24 .*rate 100Mbit' <<<"$output") == 3 ]] || complain "not three links of 100 Mbit/s: $output"
    says "127.0.0.1 localhost 10.77.0.1 node0 10.77.0.2 node1 10.77.0.3 node2"
    up 1x1 -- sh -c 'exit 7'
    ends_with 7
    [[ $(echo words | "$root/book" cluster up 1x1 -- cat 2>/dev/null) == words ]] || complain "the command has no input"
    up 2x2 -- ssh node2 true
    says "Could not resolve hostname node2"
    ends_with 255
}

# mpirun needs no option, and what ranks of two nodes say to each other goes over the network.
test_ranks() {
    up 2x3 -- sh -c 'mpirun "$0/ranks" --quick && grep eth0: /proc/net/dev' "$bin"
    ends_with 0
    says "started by: mpirun"
    [[ $(grep -cE '^ +[0-9] +6 +[012] +3  node[01]' <<<"$output") == 6 ]] || complain "not six ranks, three on a node: $output"
    (($(awk '$1 == "eth0:" { print $2 }' <<<"$output") > 1000)) || complain "nothing went over the network: $output"
}

# `./book run` on the nodes: mpirun starts chapters that have ranks, unless these are threads or have a supervisor.
# shellcheck disable=SC1091,SC2034  # choose_launcher is ./book's, and reads what is set here
test_launcher() {
    launches() {  # EXPECTED CHAPTER OPTIONS...
        local launcher=() options chapter=$2
        choose_launcher "${@:3}"
        [[ "${launcher[*]} | ${options[*]}" == "$1" ]] || complain "./book run ${*:2} becomes ${launcher[*]} | ${options[*]}"
    }
    . "$root/tools/build.sh"
    unset CUDA_ON_CPU DDP_HOSTFILE
    launches " | --quick --processes 3" 15_overlap --quick --processes 3
    local DDP_HOSTFILE=/run/hostfile
    launches "mpirun --hostfile /run/hostfile | --quick" 15_overlap --quick
    launches "mpirun --hostfile /run/hostfile -n 3 | --quick --cap 1" 05_ranks --quick --processes 3 --cap 1
    launches " | --quick" 04_gradient_accumulation --quick
    launches " | --ranks 4" 15_overlap --ranks 4
    launches " | --supervise --folder a" 19_checkpoint_failover --supervise --folder a
    launches " | --hosts=node0:2,node1:2" 19_checkpoint_failover --hosts=node0:2,node1:2
    local CUDA_ON_CPU=strict
    launches "mpirun --hostfile /run/hostfile -x CUDA_ON_CPU | " 09_all_reduce
}

# What each axis of a mesh (24_mesh) sends out of a node in a step: the bytes of its formula, and what headers, answers and heartbeats add. The
# bits are one rank's, unless parts are on two nodes. The activations of a micro-batch have 8 KiB: two stages' ranks send them for 8, two
# replicas' ranks send their gradients, and four parts add up activations in 8 (4 * 4 + 2) all-reduces.
test_mesh() {
    local mesh
    up 2x2 -- sh -c 'for mesh in 1x2x2 2x1x2 1x1x4; do mpirun "$0/mesh" --quick --steps 5 --mesh $mesh --csv "$1/$mesh.csv" || exit; done' "$bin" "$scratch"
    ends_with 0
    for mesh in 1x2x2,131072 2x1x2,217600 1x1x4,1179648; do
        awk -F, -v formula="${mesh#*,}" 'NR == 2 && $NF >= formula && $NF < 1.4 * formula && ($5 == $6 || $3 == 4) { found = 1 }
            END { exit !found }' "$scratch/${mesh%,*}.csv" || complain "${mesh/,/ should send }: $(cat "$scratch/${mesh%,*}.csv")"
    done
}

# ---- That nothing is left

inhabitants() {  # WORLD: the processes of this namespace of processes
    local process
    for process in /proc/[0-9]*; do
        [[ $(readlink "$process/ns/pid" 2>/dev/null) != "$1" ]] || echo "${process#/proc/}"
    done
}
# ends_by SIGNAL: whom it hits is the script, or with INT, as by Ctrl-C, all of them, or with SELF only the command
ends_by() {
    local world script i
    rm -f "$scratch/world"
    # (A shell that is no terminal's takes SIGINT from what it starts in the background.)
    env --default-signal=INT setsid "$root/book" cluster up 2x2 -- bash -c '
        ssh node1 sleep 60 &
        until pgrep -fx "sleep 60" >/dev/null; do sleep 0.05; done
        readlink /proc/self/ns/pid >"$0/world.part" && mv "$0/world.part" "$0/world"
        [[ $1 != SELF ]] || kill -KILL $$
        sleep 60' "$scratch" "$1" &>/dev/null </dev/null &
    script=$!
    for ((i = 0; i < 400; i++)); do [[ ! -e $scratch/world ]] || break; sleep 0.05; done
    world=$(cat "$scratch/world")
    [[ $1 == SELF || $(inhabitants "$world" | wc -l) -gt 4 ]] || complain "$1: the nodes are not there"
    case $1 in
        SELF) ;;
        INT) kill -INT -- "-$script" ;;
        *) kill "-$1" "$script" ;;
    esac
    wait "$script" 2>/dev/null
    code=$?
    for ((i = 0; i < 100; i++)); do [[ -n $(inhabitants "$world") ]] || return 0; sleep 0.05; done
    complain "$1 leaves: $(ps -o pid,args -p "$(inhabitants "$world" | paste -sd,)")"
}
test_endings() {
    local signal
    for signal in SELF TERM KILL INT HUP; do
        ends_by "$signal"
        ((code > 128)) || complain "$signal: exit status $code"
    done
}

# ---- What programs say to each fault

fails_to_meet() {
    [[ $code != 0 && $code != 124 ]] || complain "exit status $code: $output"
    [[ $(grep -c '^error: ' <<<"$output") == 1 ]] || complain "not one rank speaks: $output"
    says "error: waited 10.0 s in MPI_Bcast for the other ranks: is one of them stopped, or does MPI use a network that does not join"
}
# is_cured_by VARIABLES FAULT COMMAND
is_cured_by() {
    # shellcheck disable=SC2086  # words
    up 2x2 --fault "$2" -- env $1 $3
    ends_with 0
}

test_faults() {
    local ranks=(mpirun "$bin/ranks" --quick --timeout 3) train=(mpirun "$bin/overlap" --quick --timeout 3)
    up 2x2 --fault unknown-name -- "${ranks[@]}"
    says "ssh: Could not resolve hostname node1"
    ((code != 0)) || complain "no error"

    # Ranks that cannot meet: one of them says so. What chapters/symptoms.md says helps.
    local program
    for program in "${ranks[*]}" "mpirun $bin/cluster_info --timeout 3"; do
        # shellcheck disable=SC2086  # words
        up 2x2 --fault wrong-interface -- $program
        fails_to_meet
        is_cured_by "OMPI_MCA_btl_tcp_if_include=eth0 MASTER_ADDR=10.77.0.1" wrong-interface "$program"
    done
    up 2x2 --fault blocked-port -- "${ranks[@]}"
    fails_to_meet
    is_cured_by "OMPI_MCA_btl_tcp_port_min_v4=40000" blocked-port "${ranks[*]}"

    up 2x2 --fault wrong-interface -- "$root/tests/chapters/21_cluster/slurm.sh" srun --mpi=pmix -N2 -n4 "${ranks[@]:1}"
    if [[ $code == 77 ]]; then
        echo "SKIPPED: ranks that cannot meet under Slurm ($output)"
    else
        says "s in MPI_Bcast for the other ranks"
        ((code != 0 && code != 124)) || complain "exit status $code"
    fi

    # A node is lost: the other's ranks say so before mpirun ends them, if their time-out is shorter than mpirun's.
    local fault words
    for fault in "cut,the cable of node1 is pulled now" "off,node1 is switched off now"; do
        words=${fault#*,}
        up 2x2 --fault "${fault%,*}" -- "${train[@]}"
        says "cluster: $words"
        [[ $output =~ "error: rank "[01]" "[^$'\n']*"on node0): waited 3."[0-9]" s in operation "[^$'\n']*"on node1) has said nothing for" ]] ||
            complain "who does not answer? $output"
        [[ $code != 0 && $code != 124 ]] || complain "exit status $code"
        up 2x2 --fault "${fault%,*}" -- mpirun "$bin/overlap" --epochs 1
        says "cluster: $words"
        says "ORTE has lost communication with a remote daemon."
        [[ $output =~ "Remote daemon: "[^$'\n']*" on node node1" ]] || complain "which node is lost? $output"
        [[ $code != 0 && $code != 124 ]] || complain "exit status $code"
    done

    up 2x2 --fault cut -- true
    says "cluster: the fault has not come: less than 16 MB went through the cable of node1"
    ends_with 0

    # The supervisor of chapter 19 goes on with the node that is left.
    up 2x2 --fault off -- "$bin/checkpoint_failover" --supervise --hosts node0:2,node1:2 --folder "$scratch/checkpoints" \
        --quick --timeout 3
    says "attempt 2: 2 ranks on node0"
    says "done in 2 attempts"
    ends_with 0
}

if [[ $what != nodes ]]; then
    command -v mpirun >/dev/null || skip "no mpirun here"
    "test_$what"
else
    test_bad_input
    test_nodes
    test_launcher
    if command -v mpirun >/dev/null; then test_ranks; else echo "SKIPPED: ranks on several nodes (no mpirun)"; fi
    test_endings
fi
finish
