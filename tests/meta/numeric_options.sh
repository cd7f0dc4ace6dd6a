#!/usr/bin/env bash
# Every option of every program that takes a number, given what is none, or too much of one.
#     numeric_options.sh BIN         0, -1, 1e308, nan, inf, nothing, a digit of another script, 10^20 - 1
#     numeric_options.sh BIN ends    the largest value that the option says it takes, and for a link the slowest
# BIN is the folder of the programs. Programs and options are found by the list of chapters and by --help, so that a new one is
# tried from the day on which it is there. Each must do its work, or say in one sentence that names an option what is wrong; a value
# that its own option refuses is refused by name, before any work. At the ends a program may still be at work after some seconds.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
bin=$(cd "$1" && pwd)
which=${2-wrong}
case $which in
    wrong) seconds=120 values=(0 -1 1e308 nan inf "" ٣ 99999999999999999999) ;;
    ends) seconds=5 values=(most) ;;
esac

programs() {
    sed -nE '/ (PAGE|PYTHON)/d; s/^ddp_add_chapter\([0-9]*_([a-z0-9_]*).*/\1/p' "$root/chapters/CMakeLists.txt"
    find "$root/tests/bench" "$root/tools/cluster" \( -name 'bench_*.c[up]*' -o -name 'cluster_*.cpp' \) -printf '%f\n' | sed 's/\..*//'
}
# The options of a program whose value is called N, S, X, "N,N,..." or BANDWIDTH,LATENCY; not those with a choice, a text or a path.
numeric_options() {
    "$bin/$1" --help | sed -nE 's/^  (--[a-z-]+) ([A-Z][A-Z,.]*)( .*)?$/\1 \2/p' | sed -E '/ (TEXT|FILE|DIR|PATH)$/d; s/ .*//'
}

# most PROGRAM OPTION: the largest value, in the words of the option itself; the slowest link.
# shellcheck disable=SC2317  # try calls it
most() {
    if [[ $2 == --link ]]; then
        echo 1B/s,0s
    else
        "$bin/$1" "$2" x 2>&1 | sed -nE "s/.* from [^ ]+ to ([^ ]+), not 'x'\.\$/\1/p"
    fi
}

# try PROGRAM OPTION VALUE: prints a line for each thing that is wrong.
# shellcheck disable=SC2317  # xargs calls it
try() {
    local program=$1 option=$2 value=$3 status=0 folder errors
    folder=$(mktemp -d -p "$scratch")
    [[ $value != most ]] || value=$(most "$program" "$option")
    (cd "$folder" && TMPDIR=$folder timeout -k 60 "$seconds" "$bin/$program" --quick "$option" "$value" \
        >out 2>err </dev/null) || status=$?
    errors=$(grep -c '^error: ' "$folder/err")
    wrong() { echo "$program $option '$value': $*, status $status: $(tail -n 3 "$folder/err")"; }
    if ((status == 0)); then
        [[ -s $folder/out && $errors == 0 ]] || wrong "neither works nor is refused"
    elif ((status == 124)); then
        [[ $which == ends ]] || wrong "does not end"
    elif ((status > 2)); then
        wrong "crashes"
    elif grep -q 'takes ranks on several nodes' "$folder/err"; then
        : # nor is there more of it to try on one machine
    elif ((errors != 1)) || ! grep -qE '^error: .*(--[a-z]|out of memory)' "$folder/err"; then
        wrong "no sentence that names an option"
    elif [[ $which == wrong ]]; then
        [[ $status == 2 && $(wc -l <"$folder/err") == 1 && ! -s $folder/out ]] || wrong "not refused at once"
        grep -q "^error: $option needs .*, not '$value'\.\$" "$folder/err" || wrong "does not say what it takes"
    fi
    rm -r "$folder"
}

export -f try most
export bin scratch seconds which
mapfile -t cases < <(
    for program in $(programs); do
        for option in $(numeric_options "$program"); do
            for value in "${values[@]}"; do printf '%s\n' "$program" "$option" "$value"; done
        done
    done
)
tried=$((${#cases[@]} / 3 / ${#values[@]}))
((tried > 100)) || complain "only $tried numeric options were found"
while IFS= read -r line; do complain "$line"; done < <(
    printf '%s\0' "${cases[@]}" | xargs -0 -n 3 -P "$(nproc)" bash -c 'try "$@"' _
)
# Output that cannot be written is a failure of every program; a stream that is closed is none.
if [[ $which == wrong ]]; then
    for program in $(programs) explore_all_reduce; do
        expect 1 "error: the output could not be written: is the disk full?" bash -c "\"\$0\" --help >/dev/full" "$bin/$program"
        expect 0 "" bash -c "\"\$0\" --help >&-" "$bin/$program"
    done
fi
# ./book itself: the number of a chapter.
for verb in run check reset diff plot; do
    for value in 99 -1 1e308 nan inf "" ٣ 99999999999999999999; do
        [[ "$verb $value" != "run -1" ]] || continue  # an option of the main job
        expect_sentence 2 "" "$root/book" "$verb" "$value"
    done
done
# The pictures: a name, and two folders.
plots=
for python in python3 /usr/bin/python3; do
    [[ $plots ]] || ! "$python" -c "import matplotlib" 2>/dev/null || plots=$python
done
if [[ $plots ]]; then
    for value in 0 -1 nan "" ٣; do
        expect_sentence 1 "There are no measurements of '$value' (--only) in " "$plots" "$root/plots/plot.py" --only="$value" --from "$scratch"
        expect_sentence 1 "There are no measurements in $scratch" "$plots" "$root/plots/plot.py" --from "$scratch/$value"
    done
else
    echo "SKIPPED: plots/plot.py (no matplotlib)"
fi
echo "$tried options were tried"
finish
