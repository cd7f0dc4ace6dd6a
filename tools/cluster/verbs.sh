# Sourced by ./book: starts ranks on several nodes, and `./book cluster`.
# shellcheck shell=bash disable=SC2154,SC2034  # what is not set here, ./book sets, and what is not read, it reads

cluster() {
    case ${1:-} in
        up) exec bash "$root/tools/cluster/up.sh" "${@:2}" ;;
        where) cluster_info cluster_where where "${@:2}" ;;
        measure) measure_cluster "${@:2}" ;;
        scale) cluster_info cluster_scale scaling "${@:2}" ;;
        *) bad_input "cluster takes up, which makes nodes on this machine, and where, measure and scale, which look at nodes: \`./book help all\` says more." ;;
    esac
}
# What the links carry; or with --beside what the all-reduces over them take, beside MPI's and Gloo's.
measure_cluster() {
    local others='' options=()
    while (($#)); do
        if [[ $1 == --beside ]]; then others=,${2:-}, && shift; else options+=("$1"); fi
        shift
    done
    if [[ ! $others ]]; then
        cluster_info links links ${options[@]+"${options[@]}"}
        return
    fi
    [[ $others =~ ^(,(mpi|gloo))+,$ ]] || bad_input "--beside takes mpi, gloo or both: --beside mpi,gloo."
    if [[ $others == *,gloo,* ]]; then
        [[ -x $root/build/pytorch/bin/python ]] || fail "Gloo is PyTorch's: \`./book setup pytorch\` fetches it."
        options+=(--gloo "$root/build/pytorch/bin/python")
    fi
    run_on_nodes bench_nodes bench_nodes "bench nodes" ${options[@]+"${options[@]}"}
}
# cluster_info FILE WHAT [options]: shows what there is to know of a cluster, in out/FILE.csv, too.
cluster_info() { run_on_nodes "$1" cluster_info "the tour of a cluster" --show "$2" "${@:3}"; }
# run_on_nodes FILE PROGRAM NAME [--hosts a:4,b:4 | --hostfile FILE] [options]: builds a program and runs it in each place of the
# nodes, into out/FILE.csv.
run_on_nodes() {
    local file=$1 program=$2 shown=$3 nodes=() processes=() options=()
    shift 3
    while (($#)); do
        case $1 in
            --hosts | --hostfile)
                [[ ${2:-} && ${2:-} != -* ]] || bad_input "$1 takes nodes: --hosts a:4,b:4, or --hostfile FILE."
                [[ ${#nodes[@]} == 0 ]] || bad_input "--hosts and --hostfile both name the nodes: give one of them, and once."
                [[ $1 != --hostfile || -r $2 ]] || bad_input "The hostfile '$2' cannot be read: it has a line 'node slots=4' for each node."
                [[ $1 != --hosts ]] || nodes=(--host "$2")
                [[ $1 != --hostfile ]] || nodes=(--hostfile "$2")
                shift
                ;;
            --processes)
                [[ ${2:-} =~ ^[0-9]+$ ]] || bad_input "--processes takes the number of ranks, such as --processes 4."
                processes=(-n "$2")
                shift
                ;;
            --cpu | --gpu) wanted=${1#--} ;;
            *) options+=("$1") ;;
        esac
        shift
    done
    prepare bench
    build "$shown" "$program"
    choose_nodes ${nodes[@]+"${nodes[@]}"}
    export OMPI_MCA_orte_execute_quiet=1 PRTE_MCA_prte_execute_quiet=1  # what is wrong the ranks say themselves
    if ((${#processes[@]})); then
        if ((${#launcher[@]})); then launcher+=("${processes[@]}"); else options+=(--processes "${processes[1]}"); fi
    fi
    measure "$file" "$folder/bin/$program" ${options[@]+"${options[@]}"}
}
# Sets $launcher to what starts a rank in each place: of the nodes that are named, of those of `./book cluster up`, or of
# the Slurm allocation. Without any of them it stays empty: the program starts its ranks itself.
choose_nodes() {  # [--host LIST | --hostfile FILE]
    if (($# == 0)) && [[ ${DDP_HOSTFILE:-} ]]; then set -- --hostfile "$DDP_HOSTFILE"; fi
    if (($# == 0)) && [[ ${SLURM_JOB_ID:-} ]] && srun --mpi=list 2>&1 | grep -qw pmix; then
        launcher=(srun --mpi=pmix --kill-on-bad-exit=1)
    elif (($#)) || [[ ${SLURM_JOB_ID:-} ]]; then
        command -v mpirun >/dev/null || fail "Ranks on several nodes are started by mpirun, which is not here: install MPI, or \`module load\` it."
        start_by_mpirun "$@"
    fi
}
