# shellcheck shell=bash
# Sourced by .ci/run and .ci/weekly: steps that all run, whatever became of the others, with a log for each in build/ci, and a last line that
# counts the tests of all.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec </dev/null
logs=build/ci
rm -rf "$logs" && mkdir -p "$logs"
cores=$(nproc)
# A checkout often belongs to somebody else than root, and git would then refuse to list its files.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

table=() failed_steps=()
step() {  # step NAME command...
    local name=$1 start=$SECONDS result=ok
    shift
    printf '\n==== %s\n' "$name"
    "$@" 2>&1 | tee "$logs/$name.log" || {
        result=FAILED
        failed_steps+=("$name")
    }
    table+=("$(printf '%-12s %7d s   %s' "$name" $((SECONDS - start)) "$result")")
}

# install PACKAGE...: those of Debian's that are not here
install() {
    local package
    apt-get update -qq || echo "apt cannot be asked"
    for package in "$@"; do
        dpkg -s "$package" &>/dev/null ||
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
            echo "$package is not here and apt cannot install it"
    done
}

# What the network brings while the book is built: PyTorch, and what makes the site. Where it cannot be had, that is a failure.
fetch() { timeout 600 ./book setup pytorch && timeout 300 ./book setup web; }

# sanitized PRESET LABEL...: builds and runs the tests that have one of the labels.
sanitized() {
    local preset=$1 any
    shift
    any="^($(IFS='|' && echo "$*"))\$"
    cmake --preset "$preset" -DBUILD_TESTING=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 >"$logs/$preset.configure" ||
        { cat "$logs/$preset.configure" && return 1; }
    cmake --build "build/$preset" --parallel "$cores" --target "${@/#/tests_}" &&
        "${fixed_addresses[@]}" ctest --test-dir "build/$preset" -L "$any" --output-on-failure --no-tests=error -j "$((3 * cores + 1))"
}
# Sanitizers keep their shadow at fixed addresses; where the kernel puts programs at very random ones
# (vm.mmap_rnd_bits above 28), those of g++ 12 end with "unexpected memory mapping".
fixed_addresses=()
! setarch -R true 2>/dev/null || fixed_addresses=(setarch -R)

# finish WARN FAIL: the seconds above which all steps together are worth a word, and above which they have failed.
finish() {
    local passed=0 failed=0 log bad all
    ((SECONDS <= $2)) || failed_steps+=("the time: $SECONDS s of $2")
    for log in "$logs"/*.log; do
        while read -r bad all; do
            passed=$((passed + all - bad)) failed=$((failed + bad))
        done < <(sed -nE 's/.*tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$log")
    done
    printf '\n%-12s %9s\n' step took
    printf '%s\n' "${table[@]}"
    printf '%-12s %7d s\n' all "$SECONDS"
    grep -hE '^(built for CUDA|not compiled|none of them run|format not|scripts not)' "$logs"/*.log
    ((SECONDS <= $1)) || echo "warning: $SECONDS s; on two quiet cores it should be at most $1"
    ((${#failed_steps[@]} == 0)) || echo "failed: ${failed_steps[*]}"
    echo "$passed passed, $failed failed"
    ((${#failed_steps[@]} == 0))
}
