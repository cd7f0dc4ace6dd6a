# Sourced by ./book: builds under build/, with a log; runs what was built, and draws what it measured.
# shellcheck shell=bash disable=SC2154,SC2034  # what is not set here, ./book sets

# ---- Building ------------------------------------------------------------------------------------
step() {  # step "what it does" command...: one line for the reader, all the rest into the log
    local what=$1 start=$SECONDS
    shift
    printf '%s' "$what" >&2 2>/dev/null || true
    if "$@" &>>"$log" </dev/null; then
        say " ($((SECONDS - start)) s)"
    else
        say " failed"
        return 1
    fi
}
explain() {  # the log's first error, and where the rest is
    local error=': (fatal )?error[ :#]|^CMake Error|undefined reference|cannot find -l'
    grep -m1 -A4 -E "$error" "$log" >&2 || tail -n 5 "$log" >&2
    fail "$1; the whole log is $log"
}

lock_folder() {  # one ./book at a time builds in a folder: until unlock_folder, or the end
    { mkdir -p "$folder" && : >>"$folder/book.lock"; } 2>/dev/null ||
        fail "$folder cannot be written: make room on the disk, or copy the book to a folder that is yours."
    exec 9>"$folder/book.lock"
    if ! flock -n 9; then
        say "another ./book is building in build/${folder##*/}: waiting for it"
        flock 9
    fi
    : >"$log"
}
unlock_folder() { exec 9>&-; }

configure() {  # VERB: only if this machine has changed: the build itself sees a change of the tree
    local options tests=OFF state built_in
    built_in=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null) || true
    if [[ -n $built_in && ! $built_in -ef $root ]]; then
        say "build/${folder##*/} was built in $built_in: building it anew here"
        find "$folder" -mindepth 1 -maxdepth 1 ! -name book.lock ! -name book.log -exec rm -rf {} +
    fi
    # The tests are half of what CMake reads: they are left out until a verb needs them.
    if has catch2 && { [[ $1 == test ]] || grep -qs '^BUILD_TESTING:BOOL=ON' "$folder/CMakeCache.txt"; }; then
        tests=ON
    fi
    options=("-DBUILD_TESTING=$tests")
    state="${compiler[*]} $compiler_has $(command -v mpicxx || true) tests=$tests"
    [[ $mode == cpu ]] || state+=" $(nvcc_version "$(find_nvcc)") $(names_of_gpus)"
    [[ $state != "$(cat "$folder/book.state" 2>/dev/null)" ]] || return 0
    if [[ $mode == gpu ]]; then rm -f "$folder/CMakeCache.txt"; fi  # it would keep the architecture of another GPU
    if [[ ! -f $folder/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        options+=(-G Ninja)
    fi
    step "configuring build/${folder##*/}" env -C "$root" cmake --preset "${folder##*/}" "${options[@]}" ||
        explain "Configuring failed"
    echo "$state" >"$folder/book.state"
}

prepare() {  # everything before the first target can be built
    choose_mode
    lock_folder
    join_prefixes
    ensure_parts "$1"
    configure "$1"
}
build() {  # build "what the reader calls it" targets...
    step "building $1" cmake --build "$folder" --parallel "$cores" --target "${@:2}" ||
        explain "Building $1 failed"
    unlock_folder
}

# Runs a program, and says by which signal it was ended, if by any: in place of the shell, which says it in its own words. If
# this shell is ended alone, be it by kill -9, the program gets SIGTERM: a launcher ends its ranks then.
run_program() {  # PROGRAM options...
    local status=0 with_us=(setpriv --pdeathsig TERM)
    "${with_us[@]}" true 2>/dev/null || with_us=()  # util-linux is older than 2.33
    { ${with_us[@]+"${with_us[@]}"} "$@" 2>&8 8>&- || status=$?; } 8>&2 2>/dev/null
    case $status in
        129 | 130 | 141 | 143) ;;  # the terminal is gone, Ctrl-C, the reader of the output is gone, or it was asked to end
        137) say "the run was ended by signal 9: has the machine run out of memory?" ;;
        *) ((status <= 128 || status > 192)) || say "the run was ended by signal $((status - 128)) ($(kill -l "$status"))." ;;
    esac
    return "$status"
}
# measure NAME PROGRAM options...: runs it, keeps what it measured in out/NAME.csv (unless the options say
# where), and draws that where there is a matplotlib and a drawing.
measure() {
    local csv=$root/out/$1.csv python quick=() start status=0
    mkdir -p "$root/out" 2>/dev/null ||
        fail "The folder $root/out, for what is measured, cannot be made: is a file in its place, or the disk full?"
    start=(${launcher[@]+"${launcher[@]}"} "$2" --csv "$csv" "${@:3}")
    if [[ $output ]]; then
        run_program stdbuf -oL "${start[@]}" > >(tee "$output") || status=$?  # in a pipeline it would not be this shell's child
        wait "$!"
    else
        run_program "${start[@]}" || status=$?
    fi
    ((status == 0)) || exit "$status"
    if [[ $csv -nt $log ]] && python=$(python_that_plots); then
        # A short run is not to wait for its pictures.
        [[ " ${*:3} " != *" --quick "* ]] || quick=(--svg)
        "$python" "$root/plots/plot.py" --only "$1" ${quick[@]+"${quick[@]}"} >&2
    fi
}

# Inside `./book cluster up` mpirun starts a rank of the chapter's program in each place of the nodes, or N with --processes N.
# Programs without ranks, and those whose ranks are threads or have a supervisor, start here as always.
choose_launcher() {  # sets $launcher, and $options to those that are for the program
    local own='^--(ranks|hosts|supervise|help)(=|$)'
    options=("$@")
    if [[ -z ${DDP_HOSTFILE:-} ]] || ((10#${chapter%%_*} < 5)) || grep -qE -e "$own" <(printf '%s\n' "$@"); then return; fi
    start_by_mpirun --hostfile "$DDP_HOSTFILE"
    options=()
    while (($#)); do
        if [[ $1 == --processes ]]; then launcher+=(-n "${2:-}") && shift; else options+=("$1"); fi
        shift
    done
}
start_by_mpirun() {  # WORDS...: sets $launcher to mpirun with them
    launcher=(mpirun "$@")
    [[ -z ${CUDA_ON_CPU:-} ]] || launcher+=(-x CUDA_ON_CPU)  # mpirun tells other nodes only what it is told to tell
}

plot() {
    local python chapter=
    (($# <= 1)) || bad_input "plot takes at most one chapter; there are: $(list_chapters)."
    (($# == 0)) || chapter=$(chapter_of "$1")
    if ! python=$(python_that_plots); then
        say "plot needs a python3 with matplotlib:"
        how_to_install matplotlib
        exit 1
    fi
    exec "$python" "$root/plots/plot.py" ${chapter:+--only "${chapter#*_}"}
}

# Lists the twenty that took longest, by the clock and beside others: of what is compiled (when it was last compiled; Make keeps
# no log of it), and of the tests.
report_slowest() {
    local lines=20
    printf '\nlongest to compile and to test, in seconds:\n'
    paste -d '|' <(
        [[ ! -e $folder/.ninja_log ]] || awk -F '\t' '
            $4 ~ /\.(o|gch)$/ { took[$4] = ($2 - $1) / 1000 }
            END { for (unit in took) print took[unit], unit }' "$folder/.ninja_log" |
            sed -E 's#CMakeFiles/|\.dir|\.(o|gch)$##g; s#/Unity/unity_([0-9]+)_cxx.cxx$# \1#' | sort -rn | head -n "$lines"
    ) <(
        sed -nE 's/.*Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*$/\2 \1/p' "$folder/book.tests" | sort -rn | head -n "$lines"
    ) | awk -F '|' '
        function row(text) { return text == "" ? "" : sprintf("%7.1f  %s", text, substr(text, index(text, " ") + 1)) }
        { printf "%-72s %s\n", row($1), row($2) }
    '
}

report_skips() {  # a test prints "SKIPPED: reason" for what it leaves out, and here nobody can miss it
    local skips long
    skips=$(
        sed -n 's/^SKIPPED: //p' "$folder/Testing/Temporary/LastTest.log"
        sed -nE 's/^\t *[0-9]+ - (.*) \((Skipped|Disabled)\)$/the whole test \1/p' "$folder/book.tests"
    )
    printf '\nskipped: %s\n' "$(grep -c . <<<"$skips" || true)"
    [[ -z $skips ]] || sort <<<"$skips" | uniq -c
    long=$(ctest --test-dir "$folder" -N "${@/-LE/-L}" | sed -n 's/^Total Tests: //p')
    (($# == 0 || long == 0)) || echo "long tests left out: $long (./book test --all runs them)"
}
