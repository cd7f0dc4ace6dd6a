#!/usr/bin/env bash
# Faults at random: a signal or the end of memory, for a rank, two ranks, their launcher, mpirun or the supervisor, at any
# moment of a job.
#     random_faults.sh BIN [FAULTS [SEED]]
# BIN is the folder of the programs; 20 faults unless FAULTS says how many. The seed is printed: with it the same faults come
# again (at the same moments, but not at the same places of the programs). Each job must end in time, with one sentence that
# names the rank and with a status that is not 0, or go on if it has a supervisor; and nothing may be left of it.
# Exits with 77 where processes cannot have a namespace of their own, in which what is left is easy to see.
set -uo pipefail

if [[ ${1-} != --inside ]]; then
    unshare --mount --pid --fork --mount-proc true 2>/dev/null || {
        echo "no namespaces can be made here"
        exit 77
    }
    exec unshare --mount --pid --fork --mount-proc bash "${BASH_SOURCE[0]}" --inside "$@"
fi
bin=$(cd "$2" && pwd) faults=${3-20} seed=${4-$((RANDOM * 32768 + RANDOM))}
RANDOM=$seed
timeout=4 failures=0 late=0
mount -t tmpfs tmpfs /dev/shm
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_backing_directory=/dev/shm

# shellcheck source=tests/chapters/19_checkpoint_failover/images.sh
. "$(dirname "${BASH_SOURCE[0]}")/images.sh"
data=$scratch/data
mkdir "$data"
images "$data" train 2000
images "$data" t10k 200

# ---- A job

# command_of WAY: sets $command and $program for one of the ways to start a job of three ranks.
command_of() {
    local options=(--data "$data" --timeout "$timeout" --epochs 3)
    local train=(--batch 8 --every 10 --learning-rate 0.02)
    local mpirun=(mpirun --oversubscribe --bind-to none -n 3)
    program=$bin/checkpoint_failover
    case $1 in
        launcher) command=("$program" --train --processes 3 "${train[@]}") ;;
        mpirun) command=("${mpirun[@]}" "$program" --train "${train[@]}") ;;
        'launcher, overlap') program=$bin/overlap command=("$bin/overlap" --processes 3) ;;
        'mpirun, overlap') program=$bin/overlap command=("${mpirun[@]}" "$bin/overlap") ;;
        'supervisor, launcher')
            command=("$program" --supervise --folder "$scratch/run" --processes 3 --max-restarts 5 "${train[@]}")
            ;;
        'supervisor, mpirun')
            command=("$program" --supervise --folder "$scratch/run" --mpirun --processes 3 --max-restarts 5 "${train[@]}")
            ;;
    esac
    command+=("${options[@]}")
}

begin_job() {  # begin_job WAY: starts it in the background, as $job
    command_of "$1"
    rm -rf "$scratch/run" "$scratch/tmp"
    mkdir "$scratch/tmp"
    TMPDIR=$scratch/tmp "${command[@]}" >"$scratch/said" 2>&1 </dev/null &
    job=$!
}

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# processes_with VARIABLE: the numbers of the program's processes that have this in their environment.
processes_with() {
    local process
    for process in /proc/[0-9]*; do
        [[ $(readlink "$process/exe") == "$program" ]] &&
            tr '\0' '\n' <"$process/environ" | grep -qx -- "$1" && echo "${process#/proc/}"
    done 2>/dev/null
}
process_of_rank() { processes_with "$([[ $way == *mpirun* ]] && echo OMPI_COMM_WORLD_RANK || echo RANK)=$1" | head -n 1; }

process_of() {  # process_of TARGET
    case $1 in
        rank*) process_of_rank "${1#rank }" ;;
        starter) if [[ $way == supervisor* ]]; then pgrep -P "$job" | head -n 1; else echo "$job"; fi ;;
        supervisor) echo "$job" ;;
    esac
}

# ---- A fault

do_to() {  # do_to FAULT PROCESS...
    local fault=$1 pages
    shift
    if [[ $fault == memory ]]; then  # from now on it gets none
        # Nothing to multiply, of a process that has ended, would end the loop of all faults.
        pages=$(cut -d ' ' -f 1 "/proc/$1/statm") && [[ $pages ]] && prlimit --pid "$1" --as=$((pages * 4096))
    else
        kill -s "$fault" "$@"
    fi 2>/dev/null
}

# Open MPI's own files are its own business: a killed mpirun leaves some.
what_is_left() {
    ps -e -o stat=,args= | awk '$1 !~ /^Z/ && $2 != "ps" && $2 != "awk" && !/ --inside /'
    find /dev/shm "$scratch/tmp" -mindepth 1 ! -path '*/ompi.*' ! -name 'vader_segment.*'
}

complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    head -n 20 "$scratch/said" | sed 's/^/    /'
}

# Where MPI itself has ended a rank, mpirun names it by its last line.
says_who() {
    grep -qE "^(error: |launcher: |mpirun noticed).*rank (${victims// /|})\\b|Process name: .*,(${victims// /|})\\]$" "$1"
}

# judge: looks at the job that has ended with $status, $took milliseconds after the fault.
judge() {
    local limit=$(((timeout + 5) * 1000)) errors
    errors=$(grep -c '^error: ' "$scratch/said")
    # What has not met yet gets the time that it takes to start processes and to read data.
    grep -qE 'in vain|could not meet|MPI_Init|MPI_Bcast|ended its part' "$scratch/said" && limit=15000
    # The end of MPI has the time-out for each of two waits.
    grep -qE 'MPI_Finalize|cannot end without it' "$scratch/said" && limit=$(((2 * timeout + 5) * 1000))
    if [[ $way == supervisor* && $target != supervisor || $target != rank* && $fault == STOP ]]; then
        # A stopped launcher is noticed when no line has come for 30 s; a new attempt trains again.
        limit=$((40000 + 3 * ${length[$way]}))
        # Where no rank has started, mpirun's own words are the cause, or its silence, and it is not asked again.
        [[ $status == 0 ]] ||
            grep -qE 'the last lines that it printed|status 1 and without an error message' "$scratch/said" ||
            complain "it did not go on: status $status"
    elif [[ $target == rank* && $hit ]]; then
        [[ $status != 0 || $fault == memory ]] || complain "status 0, with rank $victims"
        [[ $status == 0 ]] || says_who "$scratch/said" || complain "no sentence names rank $victims"
        ((errors <= 1)) || complain "$errors sentences"
    fi
    ((took <= limit)) || complain "it has taken $took ms, not $limit at most"
}

# A process that was killed takes a moment to end what it has started.
wait_for_nothing() {
    local left i
    for ((i = 0; i < 25; i++)); do
        left=$(what_is_left)
        [[ $left ]] || return 0
        sleep 0.2
    done
    complain "left behind: $left"
    pgrep -f "$bin/" | grep -vx $$ | xargs -r kill -9
    rm -rf /dev/shm/* "$scratch/tmp"/*
}

pick() { # pick WORD...: sets $picked to one of them
    shift $((RANDOM % $#))
    picked=$1
}

declare -A length
ways=(launcher 'launcher, overlap' 'supervisor, launcher')
if command -v mpirun >/dev/null; then ways+=(mpirun 'mpirun, overlap' 'supervisor, mpirun'); fi
for way in "${ways[@]}"; do
    begun=$(milliseconds)
    begin_job "$way"
    wait "$job" || complain "$way, without a fault"
    length[$way]=$(($(milliseconds) - begun))
    wait_for_nothing
done

echo "seed $seed: $faults faults"
for ((number = 1; number <= faults; number++)); do
    pick "${ways[@]}" && way=$picked
    targets=('rank 0' 'rank 1' 'rank 2' 'rank 2' starter)
    [[ $way != supervisor* ]] || targets+=(supervisor)
    pick "${targets[@]}" && target=$picked
    pick KILL STOP SEGV ABRT HUP KILL STOP memory && fault=$picked
    # Only a rank is given no memory; and a job that goes on for long shows nothing more.
    [[ $target == rank* || $fault != memory && "$way $fault" != *"overlap STOP" ]] || fault=KILL
    victims=${target#rank }
    if [[ $target == rank* && $fault == KILL ]] && ((RANDOM % 3 == 0)); then victims="0 1"; fi
    most=${length[$way]}
    [[ $way != *overlap ]] || most=$((most < 6000 ? most : 6000))  # from then on it shows other things
    moment=$((RANDOM * most / 32768))
    begin_job "$way"
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    processes=()
    for ((i = 0; i < 50 && ${#processes[@]} == 0; i++)); do  # it may not have started yet
        kill -0 "$job" 2>/dev/null || break
        if [[ $victims == "0 1" ]]; then
            read -ra processes <<<"$(process_of_rank 0) $(process_of_rank 1)"
        else
            read -ra processes <<<"$(process_of "$target")"
        fi
        [[ ${processes[*]-} ]] || sleep 0.05
    done
    begun=$(milliseconds) hit=
    if [[ ${processes[*]-} ]] && do_to "$fault" "${processes[@]}"; then hit=yes; fi
    if [[ $fault == STOP && $target != rank* && ! ($target == starter && $way == supervisor*) ]]; then
        sleep 2
        kill -s CONT "${processes[@]}"  # who would notice?
    fi
    status=0
    timeout 100 tail -s 0.05 --pid="$job" -f /dev/null || kill -9 "$job"
    { wait "$job" || status=$?; } 2>/dev/null
    took=$(($(milliseconds) - begun))
    [[ $hit ]] || late=$((late + 1))
    printf '%3d  %-20s %-7s to %-10s at %5d ms: status %3d after %5d ms%s\n' "$number" "$way" "$fault" \
        "${target/rank*/rank $victims}" "$moment" "$status" "$took" "$([[ $hit ]] || echo ", too late")"
    judge
    wait_for_nothing
done
echo "$((number - 1)) faults ($late of them too late), $failures failures, seed $seed"
((failures == 0 && number == faults + 1))
