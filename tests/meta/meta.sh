# Sourced by the scripts of this folder: what they all need to look at the house from outside.
# shellcheck shell=bash
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
command -v make >/dev/null || export CMAKE_GENERATOR=Ninja  # CMake itself would go for make

complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# expect CODE TEXT command...: the command must end with CODE and say TEXT; $output is all it said.
expect() {
    local code=$1 text=$2 got=0
    shift 2
    output=$("$@" 2>&1 </dev/null) || got=$?
    [[ $got == "$code" ]] || complain "\`$*\` exited with $got, not $code; it said: $output"
    [[ $output == *"$text"* ]] || complain "\`$*\` did not say '$text' but: $output"
}
# The same for bad input, which gets one sentence and nothing else.
expect_sentence() {
    expect "$@"
    [[ $output != *$'\n'* && $output == *. ]] || complain "not one sentence: $output"
}
lacks() { [[ $output != *"$1"* ]] || complain "'$1' should not be in: $output"; }

# machine_without NAME...: prints a PATH that has every program of this machine except these.
machine_without() {
    local bin=$scratch/machine dir name
    rm -rf "$bin" && mkdir "$bin"
    tr : '\n' <<<"$PATH" | while read -r dir; do
        ln -s -t "$bin" "$dir"/* 2>/dev/null  # the first of a name wins, as on PATH
    done
    for name in "$@"; do rm -f "$bin/$name"; done
    echo "$bin"
}

# little_book DIR: a book of two chapters, one bench and four tests that builds in seconds. Its house
# (book, tools, cmake, CMakeLists.txt, presets, the chapter list's function, .gitignore) is the real one.
little_book() {
    local dir=$1 list=$1/chapters/CMakeLists.txt
    mkdir -p "$dir"/{common,chapters/{01_line,02_slope},tests/bench/02_slope}
    cp -r "$root"/{book,tools,cmake,CMakeLists.txt,CMakePresets.json,.gitignore} "$dir"
    rm -r "$dir/tools/explore/engine"  # its page has links into the chapters
    sed -i 's|/usr/local/cuda|/nowhere|g' "$dir/cmake/gpu.cmake"  # CUDA is here only if PATH says so
    # Two programs of four lines need no precompiled headers, which take five seconds, and no MPI, which CMake looks for in two.
    sed -i '/^set(DDP_PRECOMPILED/,/)$/c set(DDP_PRECOMPILED <string>)' "$dir/cmake/targets.cmake"
    sed -i 's/^set(DDP_MPI AUTO/set(DDP_MPI OFF/' "$dir/CMakeLists.txt"
    sed -e '/^ddp_add_chapter(.*)$/d' -e '/^ddp_add_chapter(/,/)$/d' \
        -e '/^# Every chapter folder/i ddp_add_chapter(01_line)\nddp_add_chapter(02_slope PARENT 01_line)\n' \
        "$root/chapters/CMakeLists.txt" >"$list"
    mkdir -p "$dir/exercises/support"
    sed '/^ddp_add_exercise(/d; /^ddp_bring_along(/d; /^ddp_explore(/d; /^ddp_add_library(ddp_exercise_ranks/,/^$/d' "$root/exercises/CMakeLists.txt" >"$dir/exercises/CMakeLists.txt"
    cp "$root/tests/bench/CMakeLists.txt" "$dir/tests/bench"
    cp "$root/exercises/"{run_task.sh,not_implemented.hpp} "$dir/exercises"
    cp "$root/exercises/support/"* "$dir/exercises/support"
    local chapter
    for chapter in 01_line 02_slope; do
        echo "# A chapter" >"$dir/chapters/$chapter/README.md"
        cat >"$dir/chapters/$chapter/main.cpp" <<END
#include <cstdio>
int main(int argc, char** argv) {
    std::printf("this is $chapter with %d options, the last %s\n", argc - 1, argv[argc - 1]);
}
END
    done
    echo 'int main() { return 7; }' >"$dir/tests/bench/02_slope/bench_slope.cpp"
    for chapter in gpu report data; do
        echo "add_library(ddp_$chapter INTERFACE)"
    done >"$dir/common/CMakeLists.txt"
    cat >"$dir/tests/CMakeLists.txt" <<'END'
add_test(NAME passes COMMAND sh -c "echo 'SKIPPED: no second GPU'; echo SKIPPED is no reason")
add_test(NAME passes_too COMMAND sh -c "echo 'SKIPPED: no MPI'; echo 'SKIPPED: no second GPU'")
add_test(NAME gives_up COMMAND sh -c "exit 77")
set_tests_properties(gives_up PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME takes_long COMMAND sh -c "echo takes long")
set_tests_properties(takes_long PROPERTIES LABELS weekly)
END
}

# little_exercise: gives the little book in the current folder an exercise, slope, with two tasks.
little_exercise() {
    mkdir -p {exercises/01_line/slope,solutions/01_line,tests/mistakes/01_line}
    cp "$root"/tests/mistakes/*.sh tests/mistakes
    echo "ddp_add_exercise(01_line slope)" >>exercises/CMakeLists.txt
    cat >exercises/01_line/slope.hpp <<'END'
#pragma once
#include "exercises/not_implemented.hpp"
using ddp::NotImplemented;
int rise(int run);
int fall(int run);
END
    cat >solutions/01_line/slope.cpp <<'END'
#include "exercises/01_line/slope.hpp"
int rise(int run) {
    // stub: up
    return 2 * run;
    // end stub
}
int fall(int run) {
    // stub: down
    return -2 * run;
    // end stub
}
END
    cat >exercises/01_line/slope/test.cpp <<'END'
#include "exercises/01_line/slope.hpp"
#include "exercises/support/tasks.hpp"
namespace ddp::test {
static void require(int yours, int right) {
    if (yours != right)
        throw Wrong("You say " + std::to_string(yours) + ", right is " + std::to_string(right) + ".");
}
std::vector<Task> tasks() {
    return {{"up", [] { require(rise(3), 6); }}, {"down", [] { require(fall(3), -6); }}};
}
}  // namespace ddp::test
END
    printf '%s\n' '@@ steeper @@' 'It takes three for two.' 'says: You say 9, right is 6.' '-    return 2 * run;' '+    return 3 * run;' \
        >tests/mistakes/01_line/slope.diff
    cat >exercises/01_line/README.md <<'END'
# Exercise `slope`
## Task `up`: how high a line rises
Two for every step.

    steps   1   2
    rise    2   4
<details><summary>Hint 1</summary>

Begin with [one](../../chapters/01_line) step.

</details>
<details><summary>Hint 2</summary>
The second.
</details>
<details><summary>Hint 3</summary>
The third.
</details>
## Task `down`: how deep it falls
The same with a minus.
<details><summary>Hint 1</summary>
Turn it round.
</details>
END
    cp "$root/solutions/make_stubs.sh" solutions
    bash solutions/make_stubs.sh
}

finish() {
    ((failures == 0)) && echo "all as expected" && exit 0
    exit 1
}
