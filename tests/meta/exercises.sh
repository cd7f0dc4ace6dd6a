#!/usr/bin/env bash
# The exercises' files: stubs are what their masters make of them, every task has its text and three hints,
# nothing lies about that no list knows.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
cd "$root" || exit 1
exercises() { sed -n 's/^ddp_add_exercise(\([0-9][0-9]_[a-z0-9_]*\) \([a-z0-9_]*\).*/\1 \2/p' exercises/CMakeLists.txt; }
[[ -n $(exercises) ]] || complain "exercises/CMakeLists.txt lists no exercise"
has_solutions=yes
[[ -d solutions ]] || has_solutions=

if [[ $has_solutions ]]; then
    bash solutions/make_stubs.sh "$scratch/stubs" || complain "solutions/make_stubs.sh failed"
    stubs=$(cd "$scratch/stubs" && find . -type f | sort)
    [[ -n $stubs ]] || complain "solutions/make_stubs.sh makes nothing"
    for stub in $stubs; do
        cmp -s "$scratch/stubs/$stub" "exercises/$stub" ||
            complain "exercises/${stub#./} is not what its solution makes of it: run \`bash solutions/make_stubs.sh\`"
    done
    # The generator itself: what is hidden is gone, what is said is there, and an end must not be missing.
    mkdir -p "$scratch/book/solutions/01_x"
    cp solutions/make_stubs.sh "$scratch/book/solutions"
    printf '%s\n' 'int f() {' '    // stub: one' '    //: Do it.' '    return 7;' '    // end stub' '}' \
        '// stub' 'int g();' '// end stub' >"$scratch/book/solutions/01_x/a.cpp"
    expect 0 "" bash "$scratch/book/solutions/make_stubs.sh"
    [[ $(cat "$scratch/book/exercises/01_x/a/stub.cpp") == $'int f() {\n    // Do it.\n    throw NotImplemented("one");\n}' ]] ||
        complain "a stub is made like this: $(cat "$scratch/book/exercises/01_x/a/stub.cpp")"
    echo '// stub: two' >>"$scratch/book/solutions/01_x/a.cpp"
    expect 1 "solutions/01_x/a.cpp: a stub has no end." bash "$scratch/book/solutions/make_stubs.sh"
fi

# Files that the lists know.
{
    printf '%s\n' exercises/{CMakeLists.txt,not_implemented.hpp,run_task.sh,sum_over_ranks.hpp} \
        solutions/make_stubs.sh
    printf '%s\n' exercises/support/{{collectives,crashing_folder,launches,ranks}.{hpp,cpp},add.cu,counted.hpp,gate.hpp,junk.hpp,remembering_stream.hpp,small_network.hpp,sums.hpp,tasks.hpp,tasks_main.cpp,turns.hpp}
    while read -r chapter exercise; do
        if [[ -f exercises/$chapter/$exercise/stub.py ]]; then
            printf '%s\n' exercises/"$chapter"/{README.md,check.py,"$exercise"/stub.py}
            [[ ! $has_solutions ]] || printf '%s\n' solutions/"$chapter"/{NOTES.md,"$exercise.py"}
            continue
        fi
        for suffix in cu cpp; do
            printf '%s\n' solutions/"$chapter/$exercise.$suffix" exercises/"$chapter/$exercise"/{stub,test}."$suffix"
        done
        printf '%s\n' exercises/"$chapter"/{README.md,"$exercise.hpp"}
        [[ ! $has_solutions ]] || echo solutions/"$chapter"/NOTES.md
    done < <(exercises)
    # The labs, which tests/chapters/21_cluster/labs_test.sh looks at, and hello, which tests/chapters/05_ranks builds.
    find exercises/21_cluster/labs exercises/05_ranks/hello.cpp -type f
    [[ ! $has_solutions ]] || echo solutions/21_cluster/labs_key.md
    # Answers that take part in a chapter's program or bench.
    sed -n 's/^ddp_bring_along([a-z_]* [a-z_]* \([0-9a-z_/]*\.c[pu]*\).*/exercises\/\1/p' exercises/CMakeLists.txt
} | sort -u >"$scratch/known"
unlisted() { find exercises solutions -type f 2>/dev/null | sort | comm -23 - "$scratch/known"; }
wrong=$(unlisted)
[[ -z $wrong ]] || complain "files that no list of exercises knows:"$'\n'"$wrong"
sed -i '/not_implemented/d' "$scratch/known"
[[ $(unlisted) == exercises/not_implemented.hpp ]] || complain "unlisted files would not be found"

# wrong_lines FILE: what is not of the form that a file of mistakes has: a heading that is there once, a sentence, the words that
# tell the student, seconds perhaps, and lines of the solution.
wrong_lines() {
    awk '
        /^@@ / {
            if (name != "" && !says) print name ": says nothing"
            if (!/^@@ [a-z0-9_]+ @@$/ || seen[$2]++) print FNR ": " $0
            name = $2
            says = 0
            sentence = FNR + 1
            next
        }
        FNR == sentence { if (!/^[A-Za-z].*[.?]$/) print FNR ": " $0; next }
        /^says: ./ { says++; next }
        name == "" || !/^([-+].*|(kernel|task)_seconds: [0-9]+|)$/ { print FNR ": " $0 }
        END { if (!says) print name ": says nothing" }' "$1"
}
printf '%s\n' '@@ a @@' 'One.' 'says: one' '-x' '+y' '' '@@ b @@' 'Two.' 'says: two' 'kernel_seconds: 2' '-x' >"$scratch/mistakes"
[[ -z $(wrong_lines "$scratch/mistakes") ]] || complain "right mistakes are refused: $(wrong_lines "$scratch/mistakes")"
for change in 's/@ b @/@ a @/' 's/@ b @/@ B @/' 's/Two\./ x/' '/says: two/d' '/says: one/d' 's/kernel/colonel/' 1d; do
    [[ $(sed "$change" "$scratch/mistakes" | wrong_lines /dev/stdin) ]] || complain "a file with a wrong mistake passes: $change"
done

# An answer is explained, and what people get wrong is kept.
while read -r chapter exercise; do
    [[ $has_solutions ]] || continue
    [[ -f solutions/$chapter/NOTES.md ]] || complain "solutions/$chapter/NOTES.md is missing"
    [[ ! -f exercises/$chapter/$exercise/stub.py ]] || continue  # the program is itself the mistake
    mistakes=tests/mistakes/$chapter/$exercise.diff
    count=$(grep -c '^@@ ' "$mistakes")
    ((count >= 3)) || complain "$mistakes has $count mistakes: three are the least"
    wrong=$(wrong_lines "$mistakes")
    [[ -z $wrong ]] || complain "$mistakes:"$'\n'"$wrong"
done < <(exercises)

# too_long FILE...: tests with more lines than a student reads.
too_long() { wc -l "$@" | awk '$2 != "total" && $1 > 150 { print $2 " has " $1 " lines; 150 are the most" }'; }
seq 150 >"$scratch/short" && seq 151 >"$scratch/long"
[[ $(too_long "$scratch/short" "$scratch/long") == "$scratch/long has 151 lines; 150 are the most" ]] || complain "too_long is blind"
wrong=$(too_long exercises/*/*/test.*)
[[ -z $wrong ]] || complain "an exercise's test is short:"$'\n'"$wrong"

# Each README has every task that the stub throws for, with a title, a text and three hints of their own.
while read -r chapter exercise; do
    readme=exercises/$chapter/README.md
    [[ -f $readme ]] || { complain "$readme is missing" && continue; }
    tasks=$(sed -n "/^# Exercise \`$exercise\`/,/^# Exercise \`/{ s/^## Task \`\([a-z0-9_]*\)\`: ..*/\1/p; }" "$readme")
    thrown=$(cat exercises/"$chapter/$exercise"/stub.* | sed -n 's/.*throw NotImplemented("\([a-z0-9_]*\)").*/\1/p')
    for task in $thrown; do
        grep -qx "$task" <<<"$tasks" || complain "$readme has no line '## Task \`$task\`: title'"
    done
    for task in $tasks; do
        text=$(awk -v head="## Task \`$task\`" '/^#/ { here = index($0, head) == 1 } here' "$readme")
        [[ -n $(sed '1d; /^<details>/,$d' <<<"$text" | tr -d '[:space:]') ]] || complain "$readme: task $task has no text"
        for hint in 1 2 3; do
            said=$(sed -n "/^<details><summary>Hint $hint<\/summary>\$/,/^<\/details>\$/{ /details>/!p; }" <<<"$text" | tr -d '[:space:]')
            ((${#said} > 40)) || complain "$readme: task $task has no hint $hint"
        done
    done
done < <(exercises)

# ./book finds a task's text and hints by its name: no two tasks of a chapter share one.
for readme in exercises/*/README.md; do
    twice=$(sed -n "s/^## Task \`\([a-z0-9_]*\)\`.*/\1/p" "$readme" | sort | uniq -d | xargs)
    [[ -z $twice ]] || complain "$readme has two tasks of the same name: $twice"
done

# Of several answers that a program takes, the last one that is solved takes part.
# shellcheck disable=SC2317  # find_mine calls them
mine_of() (  # EXERCISE...
    # shellcheck source=tools/exercises.sh
    . tools/exercises.sh
    exercises() { printf '01_x %s\n' first second third; }
    has_solved() { [[ $2 != third ]]; }
    find_mine solved "$(printf '%s\n' "$@")" && echo "$mine"
)
[[ $(mine_of third second first) == second ]] || complain "of three answers, the last is not solved: $(mine_of third second first) takes part"
finish
