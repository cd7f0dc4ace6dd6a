#!/usr/bin/env bash
# The lab kit of exercises/19_cluster/labs.
#     labs_test.sh BIN            what needs no cluster: scripts, module file, images, worksheet, and a lab without Slurm
#     labs_test.sh BIN slurm      every lab under a Slurm on two hosts of this machine, with the programs in BIN
# Exits with 77 where the hosts, or Slurm, cannot run.
# shellcheck disable=SC2016  # what stands in single quotes is for later
# shellcheck source=tests/chapters/19_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

script=$(readlink -f "${BASH_SOURCE[0]}")
bin=$1
what=${2:-kit}

has() { [[ $1 == *"$2"* ]] || complain "'$2' is not in: $1"; }  # TEXT WORDS
count() { [[ $(grep -cE -e "$2" <<<"$1") == "$3" ]] || complain "'$2' is not $3 times in: $1"; }  # TEXT REGEX NUMBER

# A book of its own, whose out/ nobody else writes to: the labs, and links to the rest.
make_book() {
    scratch=$(mktemp -d -p "$bin")
    trap 'rm -rf "$scratch"' EXIT
    book=$scratch/book
    mkdir -p "$book"/{exercises/19_cluster,build/cpu}
    cp -r "$root/exercises/19_cluster/labs" "$book/exercises/19_cluster"
    ln -s "$bin" "$book/build/cpu/bin"
    labs=$book/exercises/19_cluster/labs
}

# ---- What needs no cluster

test_site() {
    sed -i 's/^project= /project=course /; s/^partition= /partition=teaching /; s/^submit_by=.*/submit_by=(echo sbatch)/' "$labs/site.sh"
    local said
    said=$(bash -c '. "$0/site.sh"; echo "$SBATCH_ACCOUNT $SBATCH_PARTITION ${SBATCH_RESERVATION-none}"; pwd; submit overlap --quick' "$labs")
    [[ $said == "course teaching none"$'\n'"$book"$'\n'"sbatch $labs/overlap.sbatch --quick" ]] || complain "site.sh: $said"
    said=$(bash -c '. "$0/site.sh"; submit flying; echo $?' "$labs" 2>&1)
    [[ $said == "submit takes a lab: all_reduce data_parallel failover overlap scaling."$'\n'2 ]] || complain "no such lab: $said"
}

# Each lab says to Slurm what it needs, and nothing that one cluster alone has.
test_scripts() {
    local file
    for file in "$labs"/*.sbatch; do
        bash -n "$file" || complain "$file is no script"
        grep -qx "#SBATCH --job-name=$(basename "$file" .sbatch) --nodes=2 --ntasks-per-node=2 --time=[0-9]* --output=out/.*" "$file" ||
            complain "$file does not say what it needs"
        ! grep -nE 'account|partition|module ' "$file" || complain "$file knows one cluster"
    done
    command -v shellcheck >/dev/null || { echo "SKIPPED: shellcheck of the labs (it is not here)" && return; }
    (cd "$root" && shellcheck -x exercises/19_cluster/labs/{*.sbatch,site.sh,container/install.sh}) || complain "shellcheck"
}

test_module() {
    local code path
    if ! command -v modulecmd >/dev/null; then
        echo "SKIPPED: the module file (no modulecmd; Debian: environment-modules)"
        return
    fi
    code=$(MODULEPATH=$labs/modulefiles modulecmd bash load ddp_by_hand)
    path=$(eval "$code" && echo "$DDP_BOOK $PATH")
    [[ $path == "$book $book/build/cpu/bin:"* ]] || complain "the module makes this of PATH: $path"
}

# Both images are of the same system, and made by the one script, whose programs are those of the labs.
test_images() {
    local docker=$labs/container/Dockerfile apptainer=$labs/container/ddp_by_hand.def program programs packages
    [[ $(sed -n 's/^FROM //p' "$docker") == "$(sed -n 's/^From: //p' "$apptainer")" ]] || complain "the images are of two systems"
    count "$(cat "$docker" "$apptainer")" 'bash /opt/ddp_by_hand/exercises/19_cluster/labs/container/install.sh$' 2
    [[ -x $root/exercises/19_cluster/labs/container/install.sh ]] || complain "there is no install.sh"
    programs=$(grep -hoE '"\$bin/[a-z_]+' "$labs"/*.sbatch | sed 's/.*\///' | sort -u | xargs)
    [[ $(sed -n 's/^programs=(\(.*\))/\1/p' "$labs/container/install.sh" | xargs -n 1 | sort | xargs) == "$programs" ]] ||
        complain "the images do not have the programs of the labs: $programs"
    for program in $programs; do [[ -x $bin/$program ]] || complain "there is no program $program"; done
    packages=$(sed -n '/^packages=(/,/)/{ s/packages=(//; s/)//; p }' "$labs/container/install.sh")
    # shellcheck disable=SC2086  # words
    if grep -qs '^12' /etc/debian_version && apt-cache show g++ &>/dev/null; then
        apt-get install --simulate $packages &>/dev/null || complain "Debian does not have all of: $packages"
    else
        echo "SKIPPED: the packages of the images (this is not Debian 12, or it has no lists of packages)"
    fi
}

# The worksheet has a space below each question, and the key, which students do not get, answers each of them.
test_worksheet() {
    local worksheet=$labs/worksheet.md key=$root/solutions/19_cluster/labs_key.md
    numbers() { grep -E '^(## Lab [0-9]|[0-9]+\. )' "$1" | grep -oE '^(## Lab [0-9]|[0-9]+\.)'; }
    (($(numbers "$worksheet" | grep -c '\.$') >= 15)) || complain "the worksheet has few questions"
    if [[ -e $key ]]; then
        diff <(numbers "$worksheet") <(numbers "$key") || complain "the key does not answer the questions of the worksheet"
    else
        [[ ! -d $root/solutions ]] || complain "there is no key"
    fi
}

# Without Slurm a lab is a script like any other, and its hosts are those of mpirun.
test_without_slurm() {
    local said
    if ! command -v mpirun >/dev/null || ! "$root/book" cluster up 1x1 -- true &>/dev/null; then
        echo "SKIPPED: a lab without Slurm (no mpirun, or no hosts can be made here)"
        return
    fi
    said=$(cd "$book" && timeout 120 "$root/book" cluster up 2x2 -- bash "$labs/all_reduce.sbatch" --quick 2>&1) ||
        complain "all_reduce without Slurm ends with $?"
    has "$said" "An all-reduce on 2 ranks of this machine"
    has "$said" "An all-reduce on 4 ranks of several hosts"
    count "$said" 'host0 has sent [0-9.]+ MB by eth0' 1
}

# ---- Every lab under Slurm: this is on host0

# lab NAME OPTIONS...: hands it in, and sets $said to its output when it has ended well.
lab() {
    local job
    job=$(submit "$1" --quick "${@:2}") || complain "$1 has ended with $?: $(tail -n 20 out/"$1"-*)"
    said=$(cat "out/$1-${job##* }"*.txt)
}
on_slurm() {
    cd "$book" || exit
    . exercises/19_cluster/labs/site.sh
    submit_by=(sbatch --wait)

    lab data_parallel
    count "$said" '^ +[0-3] +4 +[01] +2  host[01] ' 4
    count "$said" 'host0 has sent [0-9.]+ MB by eth0' 1

    lab all_reduce
    has "$said" "An all-reduce on 2 ranks of this machine"
    has "$said" "An all-reduce on 4 ranks of several hosts"

    lab overlap
    count "$said" '^epoch 1 ' 2
    [[ $(grep -o 'hash .*' <<<"$said" | uniq -c | awk '{ print $1 }') == 2 ]] || complain "overlap changes the bits: $said"

    lab scaling
    count "$said" '^ranks: [124]$' 3
    count "$said" '^epoch 1 ' 3
    ! grep -i 'srun' <<<"$said" || complain "srun has something to say"

    lab failover
    count "$said" '^life ' 1
    interrupt_failover "$(grep -o 'hash .*' <<<"$said")"
}
# The training is interrupted twice: a rank is killed, and then the whole job is put back into the queue. It goes on each time,
# and ends as if nothing had happened: with the hash that it has otherwise.
interrupt_failover() {  # HASH
    local job folder
    # shellcheck disable=SC2034  # submit reads it
    submit_by=(sbatch --parsable)
    job=$(submit failover --quick)
    folder=out/failover-$job
    wait_for "the first checkpoint" compgen -G "$folder/checkpoint-*.safetensors"
    pkill -KILL -n -f "^[^ ]*checkpoint_failover .*$folder "
    wait_for "the second life" grep -qs '^life 2' "$folder.txt"
    wait_for "a rank of it" grep -qs 'continues after step' "$folder.txt"
    scontrol requeue "$job"
    wait_for "the queue" eval '[[ $(squeue --noheader --job "$job" --format=%T) == PENDING ]]'
    scontrol update JobId="$job" StartTime=now  # Slurm would wait for two minutes
    wait_for "the end" eval '[[ -z $(squeue --noheader --job "$job") ]]'
    said=$(cat "$folder.txt")
    count "$said" '^life 1 on host0, started [01] times again by Slurm$' 2
    count "$said" 'continues after step' 2
    has "$said" "$1"
}
wait_for() {  # WHAT COMMAND...
    local i
    for ((i = 0; i < 600; i++)); do
        if "${@:2}" &>/dev/null; then return; fi
        sleep 0.1
    done
    complain "waited a minute for $1: $(tail -n 5 out/failover-*.txt)"
}

# ---- Here it starts

case $what in
    kit)
        make_book
        test_scripts
        test_images
        test_worksheet
        test_without_slurm
        test_module
        test_site
        ;;
    slurm)
        [[ $bin == "$root"/* ]] || skip "the hosts share the folder of the book, and the programs are not in it"
        "$root/book" cluster up 1x1 -- true || skip "no hosts can be made here"
        make_book
        code=0
        "$root/book" cluster up 2x2 -- "${script%/*}/slurm.sh" "$script" "$bin" on_slurm "$book" || code=$?
        exit "$code"
        ;;
    on_slurm)
        book=$3
        on_slurm
        ;;
esac
finish
