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
    (cd "$1" && find common chapters exercises solutions -type f 2>/dev/null |
        grep -E '\.(cu|cuh|cpp|hpp|h)$' | xargs -r -d '\n' grep -HnE '^ *# *include *["<]([^">]*/)?[0-9]{2}_' |
        while IFS= read -r line; do
            file=${line%%:*}
            here=$(sed -nE 's#^[a-z]+/([0-9]{2})_.*#\1#p' <<<"$file")
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

# No source switches on the compiler outside common/gpu: DDP_CUDA is the build's one word for it.
wrong=$(cd "$root" && grep -rlE '^ *# *(if|elif|ifdef|ifndef).*__CUDACC__' chapters common exercises solutions tests 2>/dev/null |
    grep -vE '^common/(gpu|cuda_on_cpu)/')
[[ -z $wrong ]] || complain "__CUDACC__ is for common/gpu only: $wrong"
wrong=$(cd "$root" && find chapters solutions exercises -name '*.cu' -exec grep -lE '^ *# *if' {} +)
[[ -z $wrong ]] || complain "a kernel file holds no #if: $wrong"

# ---- A chapter's folder

# misplaced DIR...: what a chapter's folder has too many of, and the sources at its top that its README's table lacks.
misplaced() {
    local dir entries folders table source name
    for dir in "$@"; do
        entries=$(find "$dir" -mindepth 1 -maxdepth 1 | wc -l)
        folders=$(find "$dir" -mindepth 1 -maxdepth 1 -type d | wc -l)
        ((entries <= 20)) || echo "$dir has $entries entries at its top; 20 are the most"
        ((folders <= 4)) || echo "$dir has $folders folders; 4 are the most"
        while read -r source; do
            entries=$(find "$source" -mindepth 1 -maxdepth 1 | wc -l)
            ((entries <= 20)) || echo "$source has $entries entries; 20 are the most"
        done < <(find "$dir" -mindepth 1 -maxdepth 1 -type d)
        table=$(sed -n '/^## Files, in reading order$/,/^## /p' "$dir/README.md" | grep '^|')
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
touch "$scratch/tidy/show/"{1..20}
[[ $(misplaced "$scratch/tidy" | wc -l) == 1 ]] || complain "a full folder passes"
wrong=$(cd "$root" && misplaced chapters/[0-9]*)
[[ -z $wrong ]] || complain "a chapter's folder shows its lesson:"$'\n'"$wrong"

# upward_includes DIR...: a lesson includes nothing of its chapter's show/ or bench/ (main may), and show/ nothing of bench/.
upward_includes() {
    (cd "$1" && grep -HnE '#include "([0-9]{2}_[a-z0-9_]+)/(show|bench)/' -r . --include='*.[ch]*' --include='*.cu*' | sed 's|^\./||' |
        grep -vE '^[0-9]{2}_[a-z0-9_]+/(main\.c|bench/)' |
        awk -F'[/:"]' '{ chapter = $1; for (i = 3; i <= NF; i++) if ($i ~ /^[0-9][0-9]_/) { included = $i; part = $(i + 1) }
            if (!($2 == "show" && part == "show")) print }')
}
mkdir -p "$scratch/arrows/01_one/show"
echo '#include "01_one/show/table.hpp"' | tee "$scratch/arrows/01_one/ring.cu" "$scratch/arrows/01_one/main.cpp" >"$scratch/arrows/01_one/show/b.cpp"
echo '#include "01_one/bench/times.hpp"' >"$scratch/arrows/01_one/show/c.cpp"
[[ $(upward_includes "$scratch/arrows" | wc -l) == 2 ]] || complain "upward includes pass: $(upward_includes "$scratch/arrows")"
wrong=$(upward_includes "$root/chapters")
[[ -z $wrong ]] || complain "a lesson does not know who shows or measures it:"$'\n'"$wrong"

wrong=$(cd "$root" && wc -l chapters/*/main.c* | awk '$2 != "total" && $1 > 120 { print $2 ": " $1 " lines" }')
[[ -z $wrong ]] || complain "a main has at most 120 lines: $wrong"

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
    mapfile -t sources < <(find "$library" -name '*.cu' -o -name '*.cpp' | grep -vE '/main\.c|/bench_')
    ((${#sources[@]} == 0)) || wrong=$(paired_names "${sources[@]}" | sed "s|$root/||g")
    [[ -z $wrong ]] || complain "names in unnamed namespaces that a unity build could pair:"$'\n'"$wrong"
done

sources() { (cd "$root" && git ls-files --cached --others --exclude-standard -- '*.cu' '*.cuh' '*.cpp' '*.hpp' | while read -r file; do
    [[ ! -e $file ]] || echo "$file"; done); }
if git -C "$root" rev-parse --git-dir &>/dev/null; then
    # A comment says what a thing does, beginning with a verb: not "Of all ranks: ..." or "What comes out of it".
    wrong=$(cd "$root" && sources | grep -E '^(chapters|common|exercises|solutions)/' |
        xargs -d '\n' awk 'FNR == 1 { before = "" } /^ *\/\/:? (Of|As|Until|What|Whoever|Those) / && before !~ /^ *\/\// {
            print FILENAME ":" FNR ":" $0 } { before = $0 }')
    [[ -z $wrong ]] || complain "a comment begins with a verb or names its thing:"$'\n'"$wrong"
    wrong=$(cd "$root" && sources | xargs -d '\n' grep -nwE 'k[A-Z][A-Za-z0-9]+')
    [[ -z $wrong ]] || complain "constants are snake_case, like all variables:"$'\n'"$wrong"
    wrong=$(cd "$root" && sources | xargs -d '\n' awk 'FNR == 1 { banner = 0 } banner && /^ *\/\// { print FILENAME ":" FNR ":" $0 }
        { banner = /^ *\/\/ ----/ }')
    [[ -z $wrong ]] || complain "a section's banner is one line:"$'\n'"$wrong"
else
    echo "SKIPPED: the rules for comments and constants (no git here)"
fi
finish
