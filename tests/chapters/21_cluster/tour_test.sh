#!/usr/bin/env bash
# `./book cluster where`, `measure` and `scale`: how ./book starts the ranks, and what the program shows on hosts of this machine.
#     tour_test.sh BIN            where and measure; the programs are in BIN
#     tour_test.sh BIN scale      scale, and the benches of other chapters on several hosts
# Exits with 77 where hosts cannot be made.
# shellcheck disable=SC2016  # what stands in single quotes is for shells on the hosts
# shellcheck source=tests/chapters/21_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

bin=$1
what=${2:-where}

# on_hosts "HxL OPTIONS" COMMAND...: sets $output and the exit status $code.
on_hosts() {
    code=0
    # shellcheck disable=SC2086  # HxL and options
    output=$(timeout 100 "$root/book" cluster up $1 -- "${@:2}" 2>&1 </dev/null) || code=$?
}
says() { [[ $output == *"$1"* ]] || complain "'$1' was not said, but: $output"; }
never_says() { [[ $output != *"$1"* ]] || complain "'$1' was said: $output"; }
ends_with() { [[ $code == "$1" ]] || complain "exit status $code and not $1: $output"; }
# column NAME: of the CSV file, a value a line.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i; next } { print $column }' "$scratch/tour.csv"; }

# ---- What ./book starts

test_bad_input() {
    code=0
    output=$("$root/book" cluster where --processes 2>&1 </dev/null) || code=$?
    [[ $output == "--processes takes the number of ranks, such as --processes 4." ]] || complain "--processes without a number says: $output"
    ends_with 2
}
# shellcheck disable=SC1091,SC2034  # choose_hosts is ./book's, and reads what is set here
test_launcher() {
    . "$root/tools/cluster.sh"
    suit_blas() { :; }
    mpirun() { :; }
    srun() { [[ $* == --mpi=list ]] && echo "MPI plugin types are... $plugins"; }
    starts() {  # EXPECTED ARGUMENTS...
        local launcher=()
        choose_hosts "${@:2}"
        [[ "${launcher[*]}" == "$1" ]] || complain "hosts '${*:2}' become: ${launcher[*]}"
    }
    unset OPENBLAS_CORETYPE CUDA_ON_CPU DDP_HOSTFILE SLURM_JOB_ID
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
    on_hosts 2x2 mpirun --map-by node "$bin/tour_cluster" --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column rank | xargs) == "0 1 2 3" && $(column host | xargs) == "host0 host1 host0 host1" ]] || complain "who is where: $(<"$scratch/tour.csv")"
    [[ $(column interface | xargs) == "eth0 eth0 eth0 eth0" ]] || complain "which network: $(<"$scratch/tour.csv")"
    awk -F, 'NR > 1 && ($NF != 1048576 || $(NF - 1) < $NF || $(NF - 1) > 1.06 * $NF) { exit 1 }' "$scratch/tour.csv" ||
        complain "1 MiB must leave each host: $(<"$scratch/tour.csv")"
    never_says "wrong network"
    never_says "bound to core"

    # One ring on hosts of two sizes.
    on_hosts 2x2 mpirun --host host0:1,host1:2 "$bin/tour_cluster" --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column expected_bytes | xargs) == "1398101"*" 1398101"*" 1398101"* ]] || complain "4/3 of 1 MiB leave each host: $(<"$scratch/tour.csv")"
}

# Both hosts believe that core 0 is theirs.
test_binding() {
    on_hosts 2x1 mpirun --bind-to core "$bin/tour_cluster"
    if [[ $(nproc) == 1 ]]; then ends_with 0 && return; fi
    ends_with 1
    says "error: ranks 0 and 1 are both bound to core"
    says "of host0 and host1, one machine, which has"
}

# A second network between two hosts, which their names do not lead to.
test_wrong_network() {
    on_hosts 2x1 sh -c '
        ip link add name eth1 type veth peer name eth1 netns "$(cat /run/host1)"
        ip address add 10.78.0.1/24 dev eth1 && ip link set eth1 up
        ssh host1 "ip address add 10.78.0.2/24 dev eth1 && ip link set eth1 up"
        mpirun -x MASTER_ADDR=10.78.0.1 "$0/tour_cluster" --csv "$1/tour.csv"' "$bin" "$scratch"
    ends_with 0
    says "have left host0 by eth1, and its name leads to eth0: the wrong network?"
    says "have left host1 by eth1, and its name leads to eth0: the wrong network?"
    (($(column sent_bytes | sort -n | tail -n 1) < 524288)) || complain "eth0 has sent it: $(<"$scratch/tour.csv")"
}

# ---- measure

test_links() {
    local seconds
    on_hosts "2x2 --link 100Mbit" mpirun "$bin/tour_cluster" --show links --quick --timeout 30 --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column link | sort | uniq -c | xargs) == "8 between 8 inside" ]] || complain "two links: $(<"$scratch/tour.csv")"
    says "between hosts (ranks 0 and 2): alpha"
    # 1 MiB at 100 Mbit/s take 83.9 ms, less one burst of 16 kB and one more on the way.
    seconds=$(awk -F, '$1 == "between" && $2 == 1048576 { print $3 }' "$scratch/tour.csv")
    awk -v s="$seconds" 'BEGIN { exit !(s > 0.080 && s < 0.16) }' || complain "1 MiB takes $seconds s at 100 Mbit/s"
    says "An all-reduce on 2 hosts of 2 ranks, and the link between them"
    [[ $(grep -cE '^ *1 MiB +(one ring|two levels) .* (1.5|1) MiB ' <<<"$output") == 2 ]] || complain "both orders: $output"
    # The simulator takes the file: a link of its own would not be so slow.
    output=$("$bin/cluster" --quick --links "$scratch/tour.csv")
    awk '$1 == 32 { found = $3 == "s" || $3 == "ms" && $2 > 100; exit } END { exit !found }' <<<"$output" ||
        complain "25 MiB on 32 ranks take longer than this at 100 Mbit/s: $output"
}

# ---- scale

# Eight buckets of 512 KiB between two hosts: 4 MiB leave each, which take 336 ms, less the bursts, whatever overlap hides.
test_scaling() {
    on_hosts "2x2 --link 100Mbit" mpirun "$bin/tour_cluster" --show scaling --compute 40ms --ranks 1,2,4 --quick --timeout 30 --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column ranks | xargs) == "1 2 4" && $(column hosts | xargs) == "1 1 2" ]] || complain "ranks and hosts: $(<"$scratch/tour.csv")"
    awk -F, '$3 == 4 { found = $5 > 0.3 && $6 > 0.3 && $5 < 2 * $6 } END { exit !found }' "$scratch/tour.csv" ||
        complain "measured and predicted on two hosts: $(<"$scratch/tour.csv")"
    awk -F, '$3 == 2 { found = $5 < 0.3 } END { exit !found }' "$scratch/tour.csv" || complain "one host has no such link: $(<"$scratch/tour.csv")"
}

# ---- The benches of chapters 10 and 15

# 1 MiB from each host to the other cannot be faster than 100 Mbit/s: the limit is the link, and not memory.
test_benches() {
    on_hosts "2x1 --link 100Mbit" mpirun "$bin/bench_nodes" --sizes 1024 --rounds 1 --timeout 30 --csv "$scratch/tour.csv"
    ends_with 0
    says "All-reduce on 2 ranks: bus bandwidth, MB/s"
    [[ $(column algorithm | xargs) == "limit mpi native" ]] || complain "the candidates: $(<"$scratch/tour.csv")"
    awk -F, 'NR > 1 && !($7 > ($1 == "limit" ? 0.0085 : 0.002) && $7 < 0.0135) { exit 1 }' "$scratch/tour.csv" ||
        complain "no link carries this: $(<"$scratch/tour.csv")"
    # The third rank has no partner on the other host: 4/3 of 12.5 MB/s, if its waiting counts, too.
    on_hosts "2x2 --link 100Mbit" mpirun --host host0:2,host1:1 "$bin/bench_nodes" --sizes 1024 --rounds 1 --timeout 30 \
        --csv "$scratch/tour.csv"
    ends_with 0
    awk -F, '$1 == "limit" { found = $7 > 0.010 && $7 < 0.018 } END { exit !found }' "$scratch/tour.csv" ||
        complain "hosts of two sizes: $(<"$scratch/tour.csv")"

    on_hosts 2x1 mpirun "$bin/bench_train" --quick --rounds 1 --timeout 30 --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column model | xargs) == "mlp mlp_copies" && $(column ranks | xargs) == "2 2" ]] || complain "two trainings: $(<"$scratch/tour.csv")"
    awk -F, 'NR > 1 && ($1 == "mlp") != ($7 > 0) { exit 1 }' "$scratch/tour.csv" || complain "who communicates? $(<"$scratch/tour.csv")"
}

# The same by srun.
test_srun() {
    local slurm=$root/tests/chapters/21_cluster/slurm.sh started=(srun --mpi=pmix -N2 -n2)
    on_hosts 2x1 "$slurm" "${started[@]}" "$bin/bench_nodes" --sizes 64 --rounds 1 --timeout 30 --csv "$scratch/tour.csv"
    if [[ $code == 77 ]]; then
        echo "SKIPPED: benches under srun ($output)"
        return
    fi
    ends_with 0
    [[ $(column algorithm | xargs) == "limit mpi native" ]] || complain "the candidates under srun: $(<"$scratch/tour.csv")"
    on_hosts 2x1 "$slurm" "${started[@]}" "$bin/bench_train" --quick --rounds 1 --timeout 30 --csv "$scratch/tour.csv"
    ends_with 0
    [[ $(column model | xargs) == "mlp mlp_copies" ]] || complain "two trainings under srun: $(<"$scratch/tour.csv")"
    on_hosts 2x1 "$slurm" env -u DDP_HOSTFILE salloc -N2 -n2 "${started[@]}" "$bin/tour_cluster" --csv "$scratch/tour.csv"
    ends_with 0
    says "Where the ranks are (started by: srun)"
    [[ $(column host | xargs) == "host0 host1" ]] || complain "who is where under srun: $(<"$scratch/tour.csv")"
}

[[ $bin == "$root"/* ]] || skip "the hosts share the folder of the book, and the programs are not in it"
command -v mpirun >/dev/null || skip "no mpirun here"
on_hosts 1x1 true
[[ $code == 0 ]] || skip "${output:-the hosts did not come up in time}"
scratch=$(mktemp -d -p "$bin")  # which the hosts share, unlike /tmp
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
