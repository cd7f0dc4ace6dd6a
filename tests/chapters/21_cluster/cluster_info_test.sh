#!/usr/bin/env bash
# `./book cluster where`, `measure` and `scale`: how ./book starts the ranks, and what the program shows on nodes of this machine.
#     cluster_info_test.sh BIN            where and measure; the programs are in BIN
#     cluster_info_test.sh BIN scale      scale, and the benches of other chapters on several nodes
# Exits with 77 where nodes cannot be made.
# shellcheck disable=SC2016  # what stands in single quotes is for shells on the nodes
# shellcheck source=tests/chapters/21_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

bin=$1
what=${2:-where}

# on_nodes "HxL OPTIONS" COMMAND...: sets $output and the exit status $code.
on_nodes() {
    code=0
    # shellcheck disable=SC2086  # HxL and options
    output=$(timeout 100 "$root/book" cluster up $1 -- "${@:2}" 2>&1 </dev/null) || code=$?
}
says() { [[ $output == *"$1"* ]] || complain "'$1' was not said, but: $output"; }
never_says() { [[ $output != *"$1"* ]] || complain "'$1' was said: $output"; }
ends_with() { [[ $code == "$1" ]] || complain "exit status $code and not $1: $output"; }
# column NAME: of the CSV file, a value a line.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i; next } { print $column }' "$scratch/cluster_info.csv"; }

# ---- What ./book starts

test_bad_input() {
    code=0
    output=$("$root/book" cluster where --processes 2>&1 </dev/null) || code=$?
    [[ $output == "--processes takes the number of ranks, such as --processes 4." ]] || complain "--processes without a number says: $output"
    ends_with 2
}
# shellcheck disable=SC1091,SC2034  # choose_nodes is ./book's, and reads what is set here
test_launcher() {
    . "$root/tools/build.sh"
    . "$root/tools/cluster/verbs.sh"
    mpirun() { :; }
    srun() { [[ $* == --mpi=list ]] && echo "MPI plugin types are... $plugins"; }
    starts() {  # EXPECTED ARGUMENTS...
        local launcher=()
        choose_nodes "${@:2}"
        [[ "${launcher[*]}" == "$1" ]] || complain "nodes '${*:2}' become: ${launcher[*]}"
    }
    unset CUDA_ON_CPU DDP_HOSTFILE SLURM_JOB_ID
    local plugins="none pmi2 pmix"
    starts ""
    starts "mpirun --host a:4,b:4" --host a:4,b:4
    local SLURM_JOB_ID=7
    starts "srun --mpi=pmix --kill-on-bad-exit=1"
    plugins="none pmi2"
    starts "mpirun"
    local DDP_HOSTFILE=/run/hostfile CUDA_ON_CPU=strict
    starts "mpirun --hostfile /run/hostfile -x CUDA_ON_CPU"
    starts "mpirun --hostfile mine -x CUDA_ON_CPU" --hostfile mine
}

# ---- where

test_where() {
    on_nodes 2x2 mpirun --map-by node "$bin/cluster_info" --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column rank | xargs) == "0 1 2 3" && $(column node | xargs) == "node0 node1 node0 node1" ]] || complain "who is where: $(<"$scratch/cluster_info.csv")"
    [[ $(column interface | xargs) == "eth0 eth0 eth0 eth0" ]] || complain "which network: $(<"$scratch/cluster_info.csv")"
    awk -F, 'NR > 1 && ($NF != 1048576 || $(NF - 1) < $NF || $(NF - 1) > 1.06 * $NF) { exit 1 }' "$scratch/cluster_info.csv" ||
        complain "1 MiB must leave each node: $(<"$scratch/cluster_info.csv")"
    never_says "wrong network"
    never_says "bound to core"

    # One ring on nodes of two sizes.
    on_nodes 2x2 mpirun --host node0:1,node1:2 "$bin/cluster_info" --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column expected_bytes | xargs) == "1398101"*" 1398101"*" 1398101"* ]] || complain "4/3 of 1 MiB leave each node: $(<"$scratch/cluster_info.csv")"
}

# Both nodes believe that core 0 is theirs.
test_binding() {
    on_nodes 2x1 mpirun --bind-to core "$bin/cluster_info"
    if [[ $(nproc) == 1 ]]; then ends_with 0 && return; fi
    ends_with 1
    says "error: ranks 0 and 1 are both bound to core"
    says "of node0 and node1, one machine, which has"
}

# A second network between two nodes, which their names do not lead to.
test_wrong_network() {
    on_nodes 2x1 sh -c '
        ip link add name eth1 type veth peer name eth1 netns "$(cat /run/node1)"
        ip address add 10.78.0.1/24 dev eth1 && ip link set eth1 up
        ssh node1 "ip address add 10.78.0.2/24 dev eth1 && ip link set eth1 up"
        mpirun -x MASTER_ADDR=10.78.0.1 "$0/cluster_info" --csv "$1/cluster_info.csv"' "$bin" "$scratch"
    ends_with 0
    says "have left node0 by eth1, and its name leads to eth0: the wrong network?"
    says "have left node1 by eth1, and its name leads to eth0: the wrong network?"
    (($(column sent_bytes | sort -n | tail -n 1) < 524288)) || complain "eth0 has sent it: $(<"$scratch/cluster_info.csv")"
}

# ---- measure

test_links() {
    local seconds
    on_nodes "2x2 --link 100Mbit" mpirun "$bin/cluster_info" --show links --quick --timeout 30 --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column link | sort | uniq -c | xargs) == "8 between 8 inside" ]] || complain "two links: $(<"$scratch/cluster_info.csv")"
    says "between nodes (ranks 0 and 2): alpha"
    # 1 MiB at 100 Mbit/s take 83.9 ms, less one burst of 16 kB and one more on the way.
    seconds=$(awk -F, '$1 == "between" && $2 == 1048576 { print $3 }' "$scratch/cluster_info.csv")
    awk -v s="$seconds" 'BEGIN { exit !(s > 0.080 && s < 0.16) }' || complain "1 MiB takes $seconds s at 100 Mbit/s"
    says "An all-reduce on 2 nodes of 2 ranks, and the link between them"
    [[ $(grep -cE '^ *1 MiB +(one ring|two levels) .* (1.5|1) MiB ' <<<"$output") == 2 ]] || complain "both orders: $output"
    # The simulator takes the file: a link of its own would not be so slow.
    output=$("$bin/cluster" --quick --links "$scratch/cluster_info.csv")
    awk '$1 == 32 { found = $3 == "s" || $3 == "ms" && $2 > 100; exit } END { exit !found }' <<<"$output" ||
        complain "25 MiB on 32 ranks take longer than this at 100 Mbit/s: $output"
}

# ---- scale

# Eight buckets of 512 KiB between two nodes: 4 MiB leave each, which take 336 ms, less the bursts, whatever overlap hides.
test_scaling() {
    on_nodes "2x2 --link 100Mbit" mpirun "$bin/cluster_info" --show scaling --compute 40ms --ranks 1,2,4 --quick --timeout 30 --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column ranks | xargs) == "1 2 4" && $(column nodes | xargs) == "1 1 2" ]] || complain "ranks and nodes: $(<"$scratch/cluster_info.csv")"
    awk -F, '$3 == 4 { found = $5 > 0.3 && $6 > 0.3 && $5 < 2 * $6 } END { exit !found }' "$scratch/cluster_info.csv" ||
        complain "measured and predicted on two nodes: $(<"$scratch/cluster_info.csv")"
    awk -F, '$3 == 2 { found = $5 < 0.3 } END { exit !found }' "$scratch/cluster_info.csv" || complain "one node has no such link: $(<"$scratch/cluster_info.csv")"
}

# ---- The benches of chapters 10 and 15

# 1 MiB from each node to the other cannot be faster than 100 Mbit/s: the limit is the link, and not memory.
test_benches() {
    on_nodes "2x1 --link 100Mbit" mpirun "$bin/bench_nodes" --sizes 1024 --rounds 1 --timeout 30 --csv "$scratch/cluster_info.csv"
    ends_with 0
    says "All-reduce on 2 ranks: bus bandwidth, MB/s"
    [[ $(column algorithm | xargs) == "limit mpi native" ]] || complain "the candidates: $(<"$scratch/cluster_info.csv")"
    awk -F, 'NR > 1 && !($7 > ($1 == "limit" ? 0.0085 : 0.002) && $7 < 0.0135) { exit 1 }' "$scratch/cluster_info.csv" ||
        complain "no link carries this: $(<"$scratch/cluster_info.csv")"
    # Beside Gloo: PyTorch's own where it is there, else a stand-in that each rank must start with what PyTorch asks for.
    local python=$root/build/pytorch/bin/python
    if [[ ! -x $python ]]; then
        python=$scratch/python
        cat >"$python" <<'END'
#!/bin/sh
[ "$WORLD_SIZE" = 2 ] && [ "$MASTER_ADDR" = 10.77.0.1 ] && [ "$GLOO_SOCKET_IFNAME" = eth0 ] && [ "$MASTER_PORT" -gt 0 ] && [ "$RANK" -lt 2 ] || exit 1
echo "# Gloo"
while read -r _ _ times; do
    for _ in $(seq "$times"); do printf "0.001 "; done
    echo 0.001
done
END
        chmod +x "$python"
    fi
    on_nodes 2x1 mpirun "$bin/bench_nodes" --sizes 4 --rounds 1 --timeout 60 --gloo "$python" --csv "$scratch/cluster_info.csv"
    ends_with 0
    says "native / Gloo"
    [[ $(column algorithm | xargs) == "limit mpi gloo native" ]] || complain "beside Gloo: $(<"$scratch/cluster_info.csv")"
    on_nodes 2x1 mpirun "$bin/bench_nodes" --sizes 4 --rounds 1 --timeout 60 --gloo /bin/false --csv "$scratch/cluster_info.csv"
    ends_with 1
    says "the ranks of Gloo have not met"
    # The third rank has no partner on the other node: 4/3 of 12.5 MB/s, if its waiting counts, too.
    on_nodes "2x2 --link 100Mbit" mpirun --host node0:2,node1:1 "$bin/bench_nodes" --sizes 1024 --rounds 1 --timeout 30 \
        --csv "$scratch/cluster_info.csv"
    ends_with 0
    awk -F, '$1 == "limit" { found = $7 > 0.010 && $7 < 0.018 } END { exit !found }' "$scratch/cluster_info.csv" ||
        complain "nodes of two sizes: $(<"$scratch/cluster_info.csv")"

    on_nodes 2x1 mpirun "$bin/bench_train" --quick --rounds 1 --timeout 30 --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column model | xargs) == "mlp mlp_copies" && $(column ranks | xargs) == "2 2" ]] || complain "two trainings: $(<"$scratch/cluster_info.csv")"
    awk -F, 'NR > 1 && ($1 == "mlp") != ($7 > 0) { exit 1 }' "$scratch/cluster_info.csv" || complain "who communicates? $(<"$scratch/cluster_info.csv")"
}

# The same by srun.
test_srun() {
    local slurm=$root/tests/chapters/21_cluster/slurm.sh started=(srun --mpi=pmix -N2 -n2)
    on_nodes 2x1 "$slurm" "${started[@]}" "$bin/bench_nodes" --sizes 64 --rounds 1 --timeout 30 --csv "$scratch/cluster_info.csv"
    if [[ $code == 77 ]]; then
        echo "SKIPPED: benches under srun ($output)"
        return
    fi
    ends_with 0
    [[ $(column algorithm | xargs) == "limit mpi native" ]] || complain "the candidates under srun: $(<"$scratch/cluster_info.csv")"
    on_nodes 2x1 "$slurm" "${started[@]}" "$bin/bench_train" --quick --rounds 1 --timeout 30 --csv "$scratch/cluster_info.csv"
    ends_with 0
    [[ $(column model | xargs) == "mlp mlp_copies" ]] || complain "two trainings under srun: $(<"$scratch/cluster_info.csv")"
    on_nodes 2x1 "$slurm" env -u DDP_HOSTFILE salloc -N2 -n2 "${started[@]}" "$bin/cluster_info" --csv "$scratch/cluster_info.csv"
    ends_with 0
    says "Where the ranks are (started by: srun)"
    [[ $(column node | xargs) == "node0 node1" ]] || complain "who is where under srun: $(<"$scratch/cluster_info.csv")"
}

[[ $bin == "$root"/* ]] || skip "the nodes share the folder of the book, and the programs are not in it"
command -v mpirun >/dev/null || skip "no mpirun here"
on_nodes 1x1 true
[[ $code == 0 ]] || skip "${output:-the nodes did not come up in time}"
scratch=$(mktemp -d -p "$bin")  # which the nodes share, unlike /tmp
trap 'rm -rf "$scratch"' EXIT

if [[ $what == scale ]]; then
    test_scaling
    test_benches
    test_srun
else
    test_bad_input
    test_launcher
    test_where
    test_binding
    test_wrong_network
    test_links
fi
finish
