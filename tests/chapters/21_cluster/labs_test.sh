#!/usr/bin/env bash
# The lab kit of exercises/21_cluster/labs.
#     labs_test.sh BIN            what needs no cluster: scripts, module file, images, worksheet, and a lab without Slurm
#     labs_test.sh BIN slurm      every lab under a Slurm on two nodes of this machine, with the programs in BIN
#     labs_test.sh BIN key        the numbers of the key, by the runs that they come from, and lab 5 without Slurm
# Exits with 77 where the nodes, or Slurm, cannot run.
# shellcheck disable=SC2016  # what stands in single quotes is for later
# shellcheck source=tests/chapters/21_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

script=$(readlink -f "${BASH_SOURCE[0]}")
bin=$1
what=${2:-kit}
key=$root/solutions/21_cluster/labs_key.md

has() { [[ $1 == *"$2"* ]] || complain "'$2' is not in: $1"; }  # TEXT WORDS
count() { [[ $(grep -cE -e "$2" <<<"$1") == "$3" ]] || complain "'$2' is not $3 times in: $1"; }  # TEXT REGEX NUMBER

# A book of its own, whose out/ nobody else writes to: the labs, and links to the rest.
make_book() {
    scratch=$(mktemp -d -p "$bin")
    trap 'rm -rf "$scratch"' EXIT
    book=$scratch/book
    mkdir -p "$book"/{exercises/21_cluster,build/cpu}
    cp -r "$root/exercises/21_cluster/labs" "$book/exercises/21_cluster"
    ln -s "$bin" "$book/build/cpu/bin"
    labs=$book/exercises/21_cluster/labs
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
    (cd "$root" && shellcheck -x exercises/21_cluster/labs/{*.sbatch,site.sh,container/install.sh}) || complain "shellcheck"
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
    count "$(cat "$docker" "$apptainer")" 'bash /opt/ddp_by_hand/exercises/21_cluster/labs/container/install.sh$' 2
    [[ -x $root/exercises/21_cluster/labs/container/install.sh ]] || complain "there is no install.sh"
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

# The worksheet has a space below each question, and the key, which students do not get, answers each of them. Both say how
# many points there are, and the worksheet how many a lab has and how long its job may take.
test_worksheet() {
    local worksheet=$labs/worksheet.md file lab minutes points
    numbers() { grep -oE '^(## Lab [0-9]|[0-9]+\. \([0-9]+ points?\))' "$1"; }
    (($(numbers "$worksheet" | grep -c '(') >= 15)) || complain "the worksheet has few questions"
    [[ $(numbers "$worksheet" | grep -c '(') == "$(grep -cE '^[0-9]+\. ' "$worksheet")" ]] || complain "a question has no points"
    points=$(numbers "$worksheet" | sed -n 's/.*(\([0-9]*\) .*/\1/p' | paste -sd+)
    grep -q "^There are $((points)) points\." "$worksheet" || complain "the points of the worksheet are $((points))"
    while IFS='|' read -r _ lab _ minutes points _; do
        file=$(grep -l "^# Lab $((lab)):" "$labs"/*.sbatch)
        grep -q -- "--time=$((minutes)) " "$file" || complain "the job of lab $lab may take other than $minutes minutes"
        (($(numbers "$worksheet" | sed -n "/^## Lab $((lab))/,/^## Lab $((lab + 1))/s/.*(\([0-9]*\) .*/\1/p" | paste -sd+) == points)) ||
            complain "lab $lab has other than $points points"
    done < <(grep -E '^\| [0-9] \|' "$worksheet")
    if [[ -e $key ]]; then
        diff <(numbers "$worksheet") <(numbers "$key") || complain "the key does not answer the questions of the worksheet"
        grep -q "^$(($(numbers "$worksheet" | sed -n 's/.*(\([0-9]*\) .*/\1/p' | paste -sd+))) points\." "$key" || complain "the key has other points"
        (($(grep -c '^   \*[1-4]' "$key") == $(numbers "$key" | grep -c '('))) || complain "not every answer of the key says what earns its points"
    else
        [[ ! -d $root/solutions ]] || complain "there is no key"
    fi
}

# Without Slurm a lab is a script like any other, and its nodes are those of mpirun.
test_without_slurm() {
    local said
    if ! command -v mpirun >/dev/null || ! "$root/book" cluster up 1x1 -- true &>/dev/null; then
        echo "SKIPPED: a lab without Slurm (no mpirun, or no nodes can be made here)"
        return
    fi
    said=$(cd "$book" && timeout 120 "$root/book" cluster up 2x2 -- bash "$labs/all_reduce.sbatch" --quick 2>&1) ||
        complain "all_reduce without Slurm ends with $?"
    has "$said" "native on 2 ranks, in place"
    has "$said" "native on 4 ranks, in place"
    count "$said" 'node0 has sent [0-9.]+ MB by eth0' 1
}

# A rank that was built for another processor: the labs say what to do.
test_illegal_instruction() {
    local said
    said=$(bash -c '. "$0/site.sh"; start_by=(env); start sh -c "kill -ILL \$\$"; echo "$?"; start sh -c "exit 3"; echo "$?"' "$labs" 2>&1)
    [[ $said == *"A rank had an illegal instruction (SIGILL): the book was built on another processor. Build it with -DDDP_NATIVE=OFF."*$'\n132\n3' ]] ||
        complain "a processor that lacks an instruction: $said"
}

# ---- The numbers of the key

# In the key, `<!-- measured: NAME NUMBER, NAME NUMBER -->` stands below the answer that has the numbers.
# wrong_numbers KEY MEASURED: as lines, which of them MEASURED, with lines "NAME NUMBER", does not confirm, and which its answer lacks.
wrong_numbers() {
    awk '
        NR == FNR { measured[$1] = $2; next }
        /^[0-9]+\. / { answer = "" }
        { answer = answer " " $0 }
        /^ +<!-- measured: .* -->$/ {
            line = $0
            sub(/.*measured: /, "", line)
            sub(/ -->$/, "", line)
            sub(/<!-- measured: .*/, "", answer)
            for (i = split(line, pair, /, /); i > 0; i--) {
                split(pair[i], word, " ")
                found++
                near = word[1] ~ /^(ms|us|MB_a)/ ? 0.2 : word[1] ~ /^steps/ ? 0 : 0.03
                if (index(answer, word[2]) == 0) print word[1] " " word[2] " is not in the text of its answer"
                if (!(word[1] in measured)) print word[1] " is measured by nobody"
                else if (measured[word[1]] > word[2] * (1 + near) || measured[word[1]] < word[2] * (1 - near))
                    print word[1] " is " word[2] " in the key, and was " measured[word[1]]
                delete measured[word[1]]
            }
        }
        END {
            for (name in measured) print name " is not in the key"
            if (found == 0) print "the key has no numbers"
        }' "$2" "$1"
}
test_wrong_numbers() {
    local wrong
    printf '%s\n' '1. It is 22.4 MB.' '   <!-- measured: step_MB 22.4 -->' >"$scratch/key"
    wrong=$(wrong_numbers "$scratch/key" <(echo step_MB 22.8))
    [[ -z $wrong ]] || complain "a right number is wrong: $wrong"
    for wrong in "step_MB 24.3" "step_MB 20" "all_reduce_MB 22.4"; do
        [[ -n $(wrong_numbers "$scratch/key" <(echo "$wrong")) ]] || complain "$wrong is not found"
    done
    sed -i 's/It is/It was not/; s/22.4 MB/35.6 MB/' "$scratch/key"
    [[ $(wrong_numbers "$scratch/key" <(echo step_MB 22.4)) == "step_MB 22.4 is not in the text of its answer" ]] || complain "the text may say what it likes"
}
# by_hand "OPTIONS OF CLUSTER UP" LAB OPTIONS...: what a lab prints without Slurm.
by_hand() {
    # shellcheck disable=SC2086  # HxL and options
    (cd "$book" && timeout 500 "$root/book" cluster up $1 -- bash "$labs/$2.sbatch" "${@:3}" 2>&1)
}
sent() { sed -n 's/^node0 has sent \([0-9.]*\) MB by eth0$/\1/p'; }
# milliseconds BYTES: of an all-reduce on both nodes.
milliseconds() { sed -n '/^native on 4 ranks, in place$/,/^$/p' | awk -v bytes="$1" '$1 == bytes { print $5 / 1000 }'; }
measure_key() {  # into $scratch/measured
    local few many said ranks
    few=$(by_hand 2x2 data_parallel --steps 2 | sent) || complain "lab 1 with 2 steps"
    many=$(by_hand 2x2 data_parallel --steps 10 | sent) || complain "lab 1 with 10 steps"
    said=$(by_hand "2x2 --link 100Mbit" all_reduce) || complain "lab 2: $said"
    awk -v few="$few" -v many="$many" -v quarter="$(milliseconds 262144 <<<"$said")" -v whole="$(milliseconds 1048576 <<<"$said")" '
        BEGIN {
            step = (many - few) / 8
            K = 1863690 * 4 / 1e6
            print "sent_2_MB", few; print "sent_10_MB", many; print "step_MB", step
            print "all_reduce_MB", step / 3; print "K_MB", K; print "all_reduce_K", step / 3 / K
            us = (whole - quarter) * 1000 / 786432
            print "ms_256_KiB", quarter; print "ms_1_MiB", whole; print "us_a_byte", us; print "MB_a_second", 1 / us
        }' >"$scratch/measured"
    for ranks in 1 2 4; do
        said=$("$bin/overlap" --epochs 1 --ranks "$ranks" --csv "$scratch/steps.csv") || complain "an epoch on $ranks ranks"
        awk -F, -v ranks="$ranks" '
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
            NR == 2 { print "steps_of_" ranks, $at["step"]; print "loss_of_" ranks, $at["loss"] }' "$scratch/steps.csv" >>"$scratch/measured"
    done
    sed -n 's/^gradients, in [0-9]* buckets* *\([0-9.]*\) MiB$/K_MiB \1/p' <<<"$said" >>"$scratch/measured"
}
test_key() {
    [[ -e $key ]] || { echo "SKIPPED: the key (this is a book for students)" && return; }
    local wrong
    measure_key
    wrong=$(wrong_numbers "$key" "$scratch/measured")
    [[ -z $wrong ]] || complain "the key says what runs do not:"$'\n'"$wrong"
}
# Lab 5 without Slurm: each start has a folder of its own, a killed rank changes nothing, and a start with a folder goes on there.
test_failover_by_hand() {
    local undisturbed folder hash start
    undisturbed=$(by_hand 2x2 failover --quick) || complain "lab 5: $undisturbed"
    hash=$(grep -o 'hash .*' <<<"$undisturbed")
    [[ $hash ]] || complain "lab 5 has no hash: $undisturbed"
    cd "$book" || exit
    by_hand 2x2 failover --quick >out/failover-killed.txt &
    start=$!
    wait_for "the folder" grep -qs '^generation 1 on node0, checkpoints in out/failover-by_hand-' out/failover-killed.txt
    folder=$(sed -n 's/^generation 1 on node0, checkpoints in //p' out/failover-killed.txt)
    [[ $undisturbed != *"$folder"* ]] || complain "two starts have one folder: $folder"
    wait_for "the first checkpoint" compgen -G "$folder/checkpoint-*.safetensors"
    pkill -KILL -n -f "^[^ ]*checkpoint_failover .*$folder "
    wait "$start" || complain "the killed lab has ended with $?"
    said=$(<out/failover-killed.txt)
    count "$said" "^generation [12] on node0, checkpoints in $folder\$" 2
    count "$said" 'continues after step' 1
    has "$said" "$hash"
    said=$(LAB_FOLDER=$folder by_hand 2x2 failover --quick) || complain "lab 5 does not go on: $said"
    count "$said" "^generation 1 on node0, checkpoints in $folder\$" 1
    count "$said" 'continues after step' 1
    has "$said" "$hash"
}

# ---- Every lab under Slurm: this is on node0

# lab NAME OPTIONS...: hands it in, and sets $said to its output when it has ended well.
lab() {
    local job
    job=$(submit "$1" --quick "${@:2}") || complain "$1 has ended with $?: $(tail -n 20 out/"$1"-*)"
    said=$(cat "out/$1-${job##* }"*.txt)
}
on_slurm() {
    cd "$book" || exit
    . exercises/21_cluster/labs/site.sh
    submit_by=(sbatch --wait)

    lab data_parallel
    count "$said" '^ +[0-3] +4 +[01] +2  node[01] ' 4
    count "$said" 'node0 has sent [0-9.]+ MB by eth0' 1

    lab all_reduce
    has "$said" "native on 2 ranks, in place"
    has "$said" "native on 4 ranks, in place"

    lab overlap
    count "$said" '^epoch 1 ' 2
    [[ $(grep -o 'hash .*' <<<"$said" | uniq -c | awk '{ print $1 }') == 2 ]] || complain "overlap changes the bits: $said"

    lab scaling
    count "$said" '^ranks: [124]$' 3
    count "$said" '^epoch 1 ' 3
    ! grep -i 'srun' <<<"$said" || complain "srun has something to say"

    lab failover
    count "$said" '^generation ' 1
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
    srun --jobid="$job" --overlap -N1 -n1 pkill -KILL -n '^rank'  # as the worksheet says
    wait_for "the second generation" grep -qs '^generation 2' "$folder.txt"
    wait_for "a rank of it" grep -qs 'continues after step' "$folder.txt"
    scontrol requeue "$job"
    wait_for "the queue" eval '[[ $(squeue --noheader --job "$job" --format=%T) == PENDING ]]'
    scontrol update JobId="$job" StartTime=now  # Slurm would wait for two minutes
    wait_for "the end" eval '[[ -z $(squeue --noheader --job "$job") ]]'
    said=$(cat "$folder.txt")
    count "$said" '^generation 1 on node0, started [01] times again by Slurm$' 2
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
        test_wrong_numbers
        test_illegal_instruction
        test_site
        ;;
    slurm)
        [[ $bin == "$root"/* ]] || skip "the nodes share the folder of the book, and the programs are not in it"
        "$root/book" cluster up 1x1 -- true || skip "no nodes can be made here"
        make_book
        code=0
        "$root/book" cluster up 2x2 -- "${script%/*}/slurm.sh" "$script" "$bin" on_slurm "$book" || code=$?
        exit "$code"
        ;;
    key)
        [[ $bin == "$root"/* ]] || skip "the nodes share the folder of the book, and the programs are not in it"
        command -v mpirun >/dev/null || skip "no mpirun here"
        "$root/book" cluster up 1x1 -- true || skip "no nodes can be made here"
        make_book
        mkdir -p "$book/out"
        test_failover_by_hand
        test_key
        ;;
    on_slurm)
        book=$3
        on_slurm
        ;;
esac
finish
