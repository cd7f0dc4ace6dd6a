#!/usr/bin/env bash
# ./book builds and runs: from any folder, through a symlink, with spaces in the path, two at once, with
# an error in a chapter; and git never sees a trace of it.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
export PATH
PATH=$(machine_without nvidia-smi)  # a GPU would build these chapters just as well, but not in seconds
here="$scratch/a book with spaces"
little_book "$here"
cd "$here" || exit 1
if command -v git >/dev/null; then
    git init -q && git add -A && git -c user.name=reader -c user.email=reader@localhost commit -qm book
    printf '// line %s\n' 1 2 3 4 >>chapters/01_line/main.cpp
    expect 0 '+    std::printf("this is 02_slope' ./book diff 2
    [[ $output == *"- ... 4 lines of 01_line"* && $output != *"line 3"* ]] || complain "what is gone is not counted: $output"
    git checkout -q chapters
else
    echo "SKIPPED: no git here to show a diff and to see that ./book leaves no trace in the tree"
    git() { :; }
fi

expect 0 "this is 01_line with 4 options, the last a b" ./book run 1 x "a b"
[[ $(wc -l <<<"$output") == 3 ]] || complain "more than a line a step: $output"
[[ $output == "configuring build/cpu ("*" s)"*"building chapter 01 ("*" s)"* ]] || complain "no steps: $output"
[[ ! -e build/cpu/bin/slope ]] || complain "run 01 built chapter 02, too"
grep -q BUILD_TESTING:BOOL=OFF build/cpu/CMakeCache.txt || complain "a run waited for the tests to be configured"
[[ $(./book run --cpu 01 2>/dev/null) == "this is 01_line with 2 options"* ]] || complain "stdout is not the program's alone"
expect 0 "this is 02_slope with 3 options, the last --quick" ./book run slope --quick --cpu
lacks configuring
expect 7 "building bench slope" ./book bench 02

cd "$scratch" || exit 1
expect 0 "this is 01_line" "$here/book" run 1
ln -s "a book with spaces/book" link
expect 0 "this is 01_line" ./link run 1
cd "$here" || exit 1

expect 0 "100% tests passed, 0 tests failed out of 3" ./book test
[[ $output == *"
skipped: 4
      1 no MPI
      2 no second GPU
      1 the whole test gives_up
long tests left out: 1 (./book test --all runs them)" ]] || complain "skips are not counted and named: $output"
[[ $output == "configuring build/cpu ("* ]] || complain "tests need a step of their own: $output"
expect 0 "this is 01_line" ./book run 1
lacks configuring
expect 0 "0 tests failed out of 4" ./book test --all
lacks "left out"

exec 8>build/cpu/book.lock
flock 8
./book run 1 8>&- &>"$scratch/waiting" &
for ((i = 0; i < 600; i++)); do  # until it says so, but for a minute at most
    [[ ! -s $scratch/waiting ]] || break
    sleep 0.1
done
[[ $(cat "$scratch/waiting") == "another ./book is building in build/cpu: waiting for it" ]] ||
    complain "it does not wait for the other one: $(cat "$scratch/waiting")"
exec 8>&-
wait
grep -q "this is 01_line" "$scratch/waiting" || complain "it does not go on when the other one has ended: $(cat "$scratch/waiting")"
./book run 1 &>"$scratch/first" &
./book run 2 &>"$scratch/second" &
wait
for said in first:01_line second:02_slope; do
    grep -q "this is ${said#*:}" "$scratch/${said%:*}" ||
        complain "two at once: $(cat "$scratch/first" "$scratch/second")"
done
[[ -z $(git status --porcelain) ]] || complain "the tree is dirty: $(git status --porcelain)"

# A copy is built anew, and leaves the original's build alone.
cp -r "$here" "$scratch/copy"
sed -i 's/this is/the copy is/' "$scratch/copy/chapters/01_line/main.cpp"
expect 0 "the copy is 01_line" "$scratch/copy/book" run 1
[[ $output == *"build/cpu was built in $here: building it anew here"* ]] || complain "not said: $output"
expect 0 "this is 01_line" ./book run 1

sed -i 's/argc - 1/argc - one/' chapters/01_line/main.cpp
expect 1 "chapters/01_line/main.cpp:3:" ./book run 1
[[ $output == *"building chapter 01 failed"*"error: 'one' was not declared"* || $output == *"error: ‘one’ was not declared"* || $output == *"error: use of undeclared identifier 'one'"* ]] ||
    complain "not the compiler's first error: $output"
[[ $output == *"Building chapter 01 failed; the whole log is $here/build/cpu/book.log" ]] || complain "where is the log? $output"
grep -q "one" build/cpu/book.log || complain "the log does not have it"

mkdir chapters/03_orphan
expect 1 "chapters/03_orphan is not in the list of chapters/CMakeLists.txt" ./book run 2
sed -i 's/return 7/return 8/' tests/bench/02_slope/bench_slope.cpp && rmdir chapters/03_orphan
expect 8 "" ./book bench slope

# What the surroundings may lack or break: a sentence of ours, and not the shell's.
ended_by() { printf '#include <csignal>\nint main() { return std::raise(%s); }\n' "$1" >chapters/01_line/main.cpp; }
ended_by SIGKILL
expect 137 "the run was ended by signal 9: has the machine run out of memory?" ./book run 1
lacks "line "
lacks Killed
ended_by SIGSEGV
expect 139 "the run was ended by signal 11 (SEGV)." ./book run 1
lacks "line "
ended_by SIGPIPE  # as in ./book run 1 | head -1
expect 141 "" ./book run 1
lacks "the run was ended"
git checkout -q chapters/01_line 2>/dev/null || cp "$scratch/copy/chapters/01_line/main.cpp" chapters/01_line
expect 0 "" env NINJA_STATUS=%x ./book run 1
expect 0 "this is 01_line" bash -c "./book run 1 2>&-"
expect 0 "building chapter 01" bash -c "./book run 1 <&- >&-"
rm -rf out && touch out
expect 1 "The folder $here/out, for what is measured, cannot be made: is a file in its place, or the disk full?" ./book run 1
lacks mkdir
rm out && mv build built && touch build
expect_sentence 1 "$here/build/cpu cannot be written: make room" ./book run 1
rm build && mv built build
bash=$(command -v bash)
mkdir -p "$scratch/without/matplotlib" && echo 'raise ImportError("none")' >"$scratch/without/matplotlib/__init__.py"
expect_sentence 1 "./book needs a system's usual programs, and PATH (/nonexistent) leads to none" \
    env PATH=/nonexistent "$bash" ./book run 1
expect_sentence 1 "plot.py needs a python3 with matplotlib" \
    env PYTHONPATH="$scratch/without" python3 "$root/plots/plot.py"

# The real tree: looking at it leaves no trace.
before=$(git -C "$root" status --porcelain --ignored 2>&1)
expect 0 "mode" "$root/book" doctor
expect 0 "chapters:" "$root/book" help
[[ $(git -C "$root" status --porcelain --ignored 2>&1) == "$before" ]] || complain "doctor or help left something behind"
finish
