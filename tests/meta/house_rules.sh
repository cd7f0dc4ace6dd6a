#!/usr/bin/env bash
# The rules that no compiler checks (CONTRIBUTING.md): arrows run only backwards, common/ knows no chapter, chapter numbers
# stand in folder names and include paths only, a chapter's folder shows its lesson first, names and comments keep to their
# form. Each rule is tried on wrong examples first. house_rules.sh BUILD_FOLDER
# shellcheck disable=SC2016  # what stands in single quotes is for awk
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
build=$1

# later_includes DIR: every include of DIR's sources that points from a chapter to a later one, or from
# common/ to any chapter.
later_includes() {
    (cd "$1" && find common chapters exercises solutions tests/bench -type f ! -path 'exercises/support/*' 2>/dev/null |
        grep -E '\.(cu|cuh|cpp|hpp|h)$' | xargs -r -d '\n' grep -HnE '^ *# *include *["<]([^">]*/)?[0-9]{2}_' |
        while IFS= read -r line; do
            file=${line%%:*}
            here=$(sed -nE 's#^(tests/)?[a-z]+/([0-9]{2})_.*#\2#p' <<<"$file")
            there=$(sed -E 's#.*include *["<]([^">]*/)?([0-9]{2})_.*#\2#' <<<"$line")
            ((10#$there <= 10#${here:-0})) && [[ $file != common/* ]] || echo "$line"
        done)
}

# The check itself first: it lets the right ones pass and finds each kind of wrong one.
mkdir -p "$scratch"/{common/gpu,chapters/{05_five,07_seven}}
echo '#include "05_five/tree.hpp"' >"$scratch/chapters/07_seven/main.cu"
echo '#include "05_five/tree.hpp"' >"$scratch/chapters/05_five/main.cpp"
[[ -z $(later_includes "$scratch") ]] || complain "right includes are refused: $(later_includes "$scratch")"
echo '#include "07_seven/ring.hpp"' >"$scratch/chapters/05_five/tree.hpp"
echo '# include <chapters/05_five/tree.hpp>' >"$scratch/common/gpu/buffer.cuh"
[[ $(later_includes "$scratch" | wc -l) == 2 ]] || complain "wrong includes pass: $(later_includes "$scratch")"

wrong=$(later_includes "$root")
[[ -z $wrong ]] || complain "arrows run only backwards, and common/ knows no chapter:"$'\n'"$wrong"

numbered() { grep -E '(^|[^A-Za-z0-9])[0-9]{2}_[a-z]|_[0-9]{2}_[a-z]'; }
[[ $(numbered <<<"chapter_07_all_reduce") && ! $(numbered <<<"test_all_reduce") ]] || complain "numbered() is blind"
targets=$(cmake --build "$build" --target help | sed -nE 's/^(\.\.\. )?([A-Za-z0-9_]+)(:.*)?$/\2/p')
grep -qx ddp_test_support <<<"$targets" || complain "these are not the targets: $targets"
wrong=$(numbered <<<"$targets")
[[ -z $wrong ]] || complain "targets carry the topic, not the chapter's number: $wrong"
# (`ctest -N` would name the tests, too, and wipe the log of the ctest that runs this one.)
tests=$(find "$build" -name CTestTestfile.cmake -exec sed -nE 's/^add_test\(([^ ]*).*/\1/p' {} +)
[[ $tests == *house_rules* ]] || complain "these are not the tests: $tests"
wrong=$(numbered <<<"$tests")
[[ -z $wrong ]] || complain "tests carry the topic, not the chapter's number: $wrong"

# into_workshop DIR: what of the book includes or sources the workshop, or names a file of it to CMake.
into_workshop() {
    (cd "$1" && grep -rnE '#include "(tests|tools)/|\. "\$root/tests/|PROJECT_SOURCE_DIR\}/tests/' chapters common exercises solutions 2>/dev/null |
        grep -vE '^exercises/CMakeLists.txt.*tests/mistakes')
}
echo '#include "tests/support/text.hpp"' >"$scratch/chapters/05_five/broken.hpp"
[[ $(into_workshop "$scratch" | wc -l) == 1 ]] || complain "the workshop is used, and that passes"
rm "$scratch/chapters/05_five/broken.hpp"
wrong=$(into_workshop "$root")
[[ -z $wrong ]] || complain "the book does not know its workshop:"$'\n'"$wrong"

# No source switches on the compiler outside common/gpu: DDP_CUDA is the build's one word for it.
wrong=$(cd "$root" && grep -rlE '^ *# *(if|elif|ifdef|ifndef).*__CUDACC__' chapters common exercises solutions tests 2>/dev/null |
    grep -vE '^common/(gpu|cuda_on_cpu)/')
[[ -z $wrong ]] || complain "__CUDACC__ is for common/gpu only: $wrong"
wrong=$(cd "$root" && find chapters solutions exercises -name '*.cu' -exec grep -lE '^ *# *if' {} +)
[[ -z $wrong ]] || complain "a kernel file holds no #if: $wrong"

# ---- A chapter's folder

# files_in_order DIR: the rows of the table in a chapter's README that says what to read in which order.
files_in_order() { sed -n '/^## Files, in reading order$/,/^## /p' "$1/README.md" | grep '^|'; }
# lesson_of DIR: the chapter's files that its table marks with ●.
lesson_of() {
    local name
    files_in_order "$1" | grep '●' | grep -oE '\]\([^)#]+' | cut -c3- | while read -r name; do
        [[ ! -f $1/$name ]] || realpath --relative-to . "$1/$name"
    done
}
# misplaced DIR...: what a chapter's folder has too many of, the sources at its top that its README's table lacks, and the lessons
# (marked ● there) that stand behind. A folder behind may have twice as many entries as the top.
misplaced() {
    local dir folder entries most folders table source name
    for dir in "$@"; do
        folders=$(find "$dir" -mindepth 1 -maxdepth 1 -type d | wc -l)
        ((folders <= 4)) || echo "$dir has $folders folders; 4 are the most"
        while read -r folder; do
            entries=$(find "$folder" -mindepth 1 -maxdepth 1 | wc -l)
            most=40
            [[ $folder != "$dir" ]] || most=20
            ((entries <= most)) || echo "$folder has $entries entries; $most are the most"
        done < <(find "$dir" -type d)
        lesson_of "$dir" | sed -n "s|^$(realpath --relative-to . "$dir")/\(.*/.*\)|$dir/\1 is marked ●, and stands behind|p"
        table=$(files_in_order "$dir")
        grep -q '●' <<<"$table" || echo "$dir/README.md marks nothing with ● in its table of files"
        while read -r source; do
            name=${source##*/}
            grep -qF "($name)" <<<"$table" || echo "$dir/README.md does not link $name in its table of files"
        done < <(find "$dir" -maxdepth 1 -type f ! -name README.md)
        while read -r name; do
            [[ -e $dir/$name ]] || echo "$dir/README.md has $name in its table of files, and there is none"
        done < <(grep -oE '\]\([^)#]+' <<<"$table" | cut -c3-)
    done
}
mkdir -p "$scratch/tidy/show" "$scratch/untidy"/{a,b,c,d,e}
touch "$scratch/tidy"/{main.cpp,ring.cu,show/table.cpp} "$scratch/untidy"/{main.cpp,ring.cu}
printf '%s\n' '## Files, in reading order' '| ● | [ring.cu](ring.cu) | x |' '| | [main.cpp](main.cpp) | x |' '## Run' \
    >"$scratch/tidy/README.md"
printf '%s\n' '## Files, in reading order' '| [main.cpp](main.cpp) | [gone.cu](gone.cu) |' >"$scratch/untidy/README.md"
[[ -z $(misplaced "$scratch/tidy") ]] || complain "a tidy folder is refused: $(misplaced "$scratch/tidy")"
[[ $(misplaced "$scratch/untidy" | wc -l) == 4 ]] || complain "an untidy folder passes: $(misplaced "$scratch/untidy")"
mkdir "$scratch/tidy/show/behind"
touch "$scratch/tidy/show/behind/"{1..40}
[[ -z $(misplaced "$scratch/tidy") ]] || complain "40 files that nobody must read are refused: $(misplaced "$scratch/tidy")"
touch "$scratch/tidy/show/behind/41"
[[ $(misplaced "$scratch/tidy") == *"show/behind has 41 entries; 40 are the most" ]] || complain "a full folder passes"
rm "$scratch/tidy/show/behind/41"
sed -i "2a | ● | [one](show/behind/1) | x |" "$scratch/tidy/README.md"
[[ $(misplaced "$scratch/tidy") == *"tidy/show/behind/1 is marked ●, and stands behind" ]] || complain "a lesson in a folder behind passes"
wrong=$(cd "$root" && misplaced chapters/[0-9]*)
[[ -z $wrong ]] || complain "a chapter's folder shows its lesson:"$'\n'"$wrong"

# outweighed DIR...: chapters whose show/ has as many lines as their lesson, or more.
outweighed() {
    local dir lesson shown
    for dir in "$@"; do
        lesson=$(lesson_of "$dir" | xargs -r -d '\n' cat | wc -l)
        shown=$(find "$dir/show" -type f -exec cat {} + 2>/dev/null | wc -l)
        ((shown == 0 || shown < lesson)) || echo "$dir/show has $shown lines, and the files marked ● have $lesson"
    done
}
mkdir -p "$scratch/weights/show"
printf '%s\n' '## Files, in reading order' '| ● | [ring.cu](ring.cu) | x |' '| | [main.cpp](main.cpp) | x |' >"$scratch/weights/README.md"
printf '1\n2\n3\n' | tee "$scratch/weights/main.cpp" >"$scratch/weights/ring.cu"
printf '1\n2\n' >"$scratch/weights/show/a.cpp"
[[ -z $(outweighed "$scratch/weights") ]] || complain "a small show/ is refused: $(outweighed "$scratch/weights")"
echo 3 >"$scratch/weights/show/b.cpp"
[[ $(outweighed "$scratch/weights") == *"3 lines, and the files marked ● have 3" ]] || complain "a show/ as large as its lesson passes"

wrong=$(cd "$root" && outweighed chapters/[0-9]*)
[[ -z $wrong ]] || complain "what shows a lesson is smaller than the lesson:"$'\n'"$wrong"

# unexplained FILE...: lessons (but for main) that begin without a picture or a table of at least five lines, or of whose lines
# fewer than a fifth have a comment.
unexplained() {
    awk 'function judge() {
            if (file == "") return
            if (head < 5) print file " begins with " head " lines of comment: a picture or a table is missing"
            if (5 * comments < lines) print file " has comments on " comments " of " lines " lines"
        }
        FNR == 1 { judge(); file = FILENAME; head = lines = comments = 0; is_head = 1 }
        is_head && /^\/\// { head++ }
        !/^\/\// { is_head = 0 }
        /[^ ]/ { lines++ }
        /\/\// { comments++ }
        END { judge() }' "$@"
}
{ printf '// a picture\n//\n//   a -> b\n//   b -> c\n//   c -> d\n' && printf 'int a;\n%.0s' {1..20}; } >"$scratch/right.cu"
[[ -z $(unexplained "$scratch/right.cu") ]] || complain "a lesson with comments is refused: $(unexplained "$scratch/right.cu")"
{ cat "$scratch/right.cu" && echo 'int b;'; } >"$scratch/silent.cu"
sed 1d "$scratch/right.cu" >"$scratch/headless.cu"
[[ $(unexplained "$scratch/silent.cu" "$scratch/headless.cu" | wc -l) == 3 ]] || complain "lessons without comments pass"
grep -v '^ *//' "$root/chapters/09_all_reduce/ring.cu" >"$scratch/ring.cu"
[[ $(unexplained "$scratch/ring.cu" | wc -l) == 2 ]] || complain "ring.cu passes without its comments"

mapfile -t lessons < <(cd "$root" && for dir in chapters/[0-9]*; do lesson_of "$dir"; done | grep -E '\.(cu|cpp)$' | grep -v '/main\.')
wrong=$(cd "$root" && unexplained "${lessons[@]}")
[[ -z $wrong ]] || complain "a lesson explains itself:"$'\n'"$wrong"

# upward_includes DIR...: a lesson includes nothing of its chapter's show/ (main may).
upward_includes() {
    (cd "$1" && grep -HnE '#include "([0-9]{2}_[a-z0-9_]+)/show/' -r . --include='*.[ch]*' --include='*.cu*' | sed 's|^\./||' |
        grep -vE '^[0-9]{2}_[a-z0-9_]+/main\.c' |
        awk -F'[/:"]' '{ chapter = $1; for (i = 3; i <= NF; i++) if ($i ~ /^[0-9][0-9]_/) { included = $i; part = $(i + 1) }
            if (!($2 == "show" && part == "show")) print }')
}
mkdir -p "$scratch/arrows/01_one/show"
echo '#include "01_one/show/table.hpp"' | tee "$scratch/arrows/01_one/ring.cu" "$scratch/arrows/01_one/main.cpp" >"$scratch/arrows/01_one/show/b.cpp"
[[ $(upward_includes "$scratch/arrows" | wc -l) == 1 ]] || complain "upward includes pass: $(upward_includes "$scratch/arrows")"
wrong=$(upward_includes "$root/chapters")
[[ -z $wrong ]] || complain "a lesson does not know who shows or measures it:"$'\n'"$wrong"

wrong=$(cd "$root" && wc -l chapters/*/main.c* | awk '$2 != "total" && $1 > 120 { print $2 ": " $1 " lines" }')
[[ -z $wrong ]] || complain "a main has at most 120 lines: $wrong"

# unnamed DIR: benches, and verbs of ./book, that no page names: nobody finds them.
unnamed() {
    (cd "$1" && {
        find tests/bench -name 'bench_*.c*' 2>/dev/null | sed -E 's|.*/bench_([a-z0-9_]+)\..*|bench \1|'
        sed -nE 's/^    ([a-z]+( \| [a-z]+)+)\)$/\1/p; s/^    ([a-z]+)\) .*/\1/p' book | tr -d ' ' | tr '|' '\n'
    } | while read -r feature; do
        grep -rqwF --include='*.md' "./book $feature" README.md chapters common exercises tools tests 2>/dev/null || echo "$feature"
    done)
}
mkdir -p "$scratch/features/tests/bench/01_one" && touch "$scratch/features/tests/bench/01_one/bench_ring.cu"
printf '    %s\n' 'run | watch)' 'test) run_tests "$@" ;;' >"$scratch/features/book"
echo '`./book run`, `./book test`' >"$scratch/features/README.md"
[[ $(unnamed "$scratch/features" | xargs) == "bench ring watch" ]] || complain "unnamed is blind: $(unnamed "$scratch/features")"
wrong=$(unnamed "$root")
[[ -z $wrong ]] || complain "a feature has a page that names it, or goes:"$'\n'"$wrong"

# ---- Names and comments

# paired_names FILE...: names that stand in the unnamed namespaces of two files. A unity build may pair any two files of a
# library, and then they would be one.
paired_names() {
    awk '
        FNR == 1 { inside = 0 }
        /^namespace \{/ { inside = 1; next }
        /^\}  \/\/ namespace$/ { inside = 0; next }
        !inside || /^[ \t}#\/]/ || /^$/ || /^(template|using|static_assert)/ { next }
        {
            line = $0
            sub(/\/\/.*/, "", line)
            sub(/__launch_bounds__\([^)]*\)/, "", line)
            if (line ~ /^(struct|class|enum|union) /) {
                sub(/^(struct|class|enum class|enum|union) +(alignas\([^)]*\) +)?/, "", line)
                sub(/[^A-Za-z0-9_].*/, "", line)
            } else if (line ~ /^(static |inline )*(constexpr|const) / && line !~ /^[^=({]*\(/) {
                sub(/ *[={;[].*/, "", line)
                sub(/.*[ *&]/, "", line)
            } else if (line ~ /\(/) {
                sub(/\(.*/, "", line)
                if (line ~ /::[A-Za-z_~]+$/) next
                sub(/.*[ *&]/, "", line)
            } else next
            if (line != "" && !((line, FILENAME) in seen)) {
                seen[line, FILENAME] = 1
                where[line] = where[line] " " FILENAME
                count[line]++
            }
        }
        END { for (name in count) if (count[name] > 1) print name ":" where[name] }' "$@"
}
printf '%s\n' 'namespace ddp {' 'namespace {' 'int count_of(int x) {' '}' 'constexpr int limit = 3;' '}  // namespace' >"$scratch/a.cpp"
printf '%s\n' 'namespace {' 'struct count_of {' '};' 'int Thing::limit() {' '}  // namespace' 'int limit;' >"$scratch/b.cpp"
[[ $(paired_names "$scratch"/[ab].cpp) == "count_of:"* && $(paired_names "$scratch"/[ab].cpp | wc -l) == 1 ]] ||
    complain "paired_names is blind: $(paired_names "$scratch"/[ab].cpp)"
for library in "$root"/chapters/*/ "$root"/common/*/; do
    mapfile -t sources < <(find "$library" -name '*.cu' -o -name '*.cpp' | grep -v '/main\.c')
    ((${#sources[@]} == 0)) || wrong=$(paired_names "${sources[@]}" | sed "s|$root/||g")
    [[ -z $wrong ]] || complain "names in unnamed namespaces that a unity build could pair:"$'\n'"$wrong"
done

sources() { (cd "$root" && git ls-files --cached --others --exclude-standard -- '*.cu' '*.cuh' '*.cpp' '*.hpp' | while read -r file; do
    [[ ! -e $file ]] || echo "$file"; done); }
# without_verb FILE...: comments that begin with neither a verb nor the name of their thing: "Of all ranks: ...", "Whether it is".
# A question is one.
without_verb() {
    awk 'FNR == 1 { before = "" }
        /^ *\/\/:? (Of|As|Until|What|Whoever|Those|Whether|How|Whichever|The same) / && before !~ /^ *\/\// && !/\?/ {
            print FILENAME ":" FNR ":" $0 }
        { before = $0 }' "$@"
}
printf '// %s x\nint a;\n' Whether How Whichever 'The same' What >"$scratch/wrong.cpp"
printf '// %s\nint a;\n' 'Returns whether x' 'How many?' 'Sums x.' $'Sums\n// what there is' >"$scratch/right.cpp"
[[ $(without_verb "$scratch/wrong.cpp" | wc -l) == 5 ]] || complain "comments without a verb pass: $(without_verb "$scratch/wrong.cpp")"
[[ -z $(without_verb "$scratch/right.cpp") ]] || complain "these comments are refused: $(without_verb "$scratch/right.cpp")"

# chapter_numbers FILE...: code that names a chapter by its number. Folders have names, which a script can change.
chapter_numbers() { grep -HnE '[Cc]hapters? [0-9]{2}\b' "$@"; }
printf '%s\n' '// as in chapter 07' '// Chapters 10 and 11' '#include "07_broadcast/cost.hpp"' '// as in 07_broadcast' >"$scratch/numbers.cpp"
[[ $(chapter_numbers "$scratch/numbers.cpp" | wc -l) == 2 ]] || complain "chapter_numbers is blind"

# ranks_in FILE...: code, without comments and texts, that knows of ranks.
ranks_in() { sed -E 's|"[^"]*"||g; s|//.*||' "$1" | grep -nwE 'ranks?|world_size' | sed "s|^|$1:|"; }
printf '%s\n' 'f("--ranks");  // of a rank' 'int x = rank + 1;' >"$scratch/ranks.cpp"
[[ $(ranks_in "$scratch/ranks.cpp") == *":2:int x = rank + 1;" ]] || complain "ranks_in is blind: $(ranks_in "$scratch/ranks.cpp")"
if git -C "$root" rev-parse --git-dir &>/dev/null; then
    mapfile -t taught < <(sources | grep -E '^(chapters|common|exercises|solutions|tools)/' | grep -vE '^exercises/(support|.*/test\.)')
    wrong=$(cd "$root" && without_verb "${taught[@]}")
    [[ -z $wrong ]] || complain "a comment begins with a verb or names its thing:"$'\n'"$wrong"
    wrong=$(cd "$root" && chapter_numbers "${taught[@]}")
    [[ -z $wrong ]] || complain "code names a chapter by its folder:"$'\n'"$wrong"
    wrong=$(cd "$root" && printf '%s\n' "${taught[@]}" | grep '^common/' | grep -v '^common/report/options' |
        while read -r file; do ranks_in "$file"; done)
    [[ -z $wrong ]] || complain "common/ knows no rank:"$'\n'"$wrong"
    wrong=$(cd "$root" && sources | xargs -d '\n' grep -nwE 'k[A-Z][A-Za-z0-9]+')
    [[ -z $wrong ]] || complain "constants are snake_case, like all variables:"$'\n'"$wrong"
    wrong=$(cd "$root" && sources | xargs -d '\n' awk 'FNR == 1 { banner = 0 } banner && /^ *\/\// { print FILENAME ":" FNR ":" $0 }
        { banner = /^ *\/\/ ----/ }')
    [[ -z $wrong ]] || complain "a section's banner is one line:"$'\n'"$wrong"
else
    echo "SKIPPED: the rules for comments and constants (no git here)"
fi
finish
