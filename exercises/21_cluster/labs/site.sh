# shellcheck shell=bash disable=SC2034  # the labs use what is set here
# What differs from one cluster to the next. An instructor edits the lines down to the next heading, once for the class:
#
#     . exercises/21_cluster/labs/site.sh      then your shell has `submit LAB`; the labs read this file themselves

project=                # what the hours are charged to (sbatch --account); empty where nobody counts them
partition=              # empty: the cluster's default
reservation=            # of a course, if it has one
modules=()              # for `module load`: whatever has the MPI that the book was built with, such as (openmpi/4.1)
bin=build/cpu/bin       # the programs, seen from the book's folder; with GPUs build/cuda/bin
submit_by=(sbatch)      # how a job is handed in
start_by=(srun --mpi=pmix --kill-on-bad-exit=1)  # how its ranks are started; a Slurm without PMIx takes (mpirun)

# ---- Nothing below differs -----------------------------------------------------------------------
labs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
book=$(cd "$labs/../../.." && pwd)
cd "$book" || return
mkdir -p out  # Slurm opens a job's output there, and says nothing where there is no such folder
[[ -z $project ]] || export SBATCH_ACCOUNT=$project
[[ -z $partition ]] || export SBATCH_PARTITION=$partition
[[ -z $reservation ]] || export SBATCH_RESERVATION=$reservation
((${#modules[@]} == 0)) || module load "${modules[@]}"

# Hands a lab in: `submit overlap`. Further words are options of its program, such as --quick.
submit() {
    [[ -e $labs/${1:-}.sbatch ]] || { echo "submit takes a lab: $(cd "$labs" && echo *.sbatch | sed 's/\.sbatch//g')." >&2 && return 2; }
    "${submit_by[@]}" "$labs/$1.sbatch" "${@:2}"
}

# Starts a program in all places of the job, or with -n N in N of them, node after node. Outside of Slurm mpirun does it,
# whose nodes are those of its hostfile.
[[ ${SLURM_JOB_ID:-} ]] || start_by=(mpirun)
start() {
    local nodes=() status=0
    # srun would spread N ranks over all nodes of the job.
    if [[ ${start_by[0]} == srun && $1 == -n ]]; then
        nodes=("--nodes=$((($2 + SLURM_NTASKS_PER_NODE - 1) / SLURM_NTASKS_PER_NODE))")
    fi
    "${start_by[@]}" "${nodes[@]}" "$@" || status=$?
    ((status != 128 + 4)) ||
        echo "A rank had an illegal instruction (SIGILL): the book was built on another processor. Build it with -DDDP_NATIVE=OFF." >&2
    return "$status"
}

# Runs a command, and prints by which interfaces this node has sent something meanwhile. (Others may have used them, too.)
count_bytes() {
    local before after
    before=$(bytes_sent)
    "$@"
    after=$(bytes_sent)
    paste <(echo "$before") <(echo "$after") |
        awk '$4 > $2 { printf "%s has sent %.1f MB by %s\n", node, ($4 - $2) / 1e6, $1 }' node="$(hostname)"
}
bytes_sent() { sed 1,2d /proc/net/dev | tr : ' ' | awk '{ print $1, $10 }'; }
