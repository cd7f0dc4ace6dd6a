#!/usr/bin/env bash
# A chapter's text shows its own code: every block that names a file (```cpp ring.cu) stands in that file of the
# chapter's folder, line by line.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
fence='```'

# wrong_excerpts README: the first line of each block that is not in its file.
wrong_excerpts() {
    local line file='' block='' folder
    folder=$(dirname "$1")
    while IFS= read -r line || [[ -n $line ]]; do
        if [[ -z $file && $line == "$fence"cpp\ * ]]; then
            file=${line#"$fence"cpp } block=''
        elif [[ -n $file && $line == "$fence" ]]; then
            [[ -f $folder/$file && $(<"$folder/$file") == *"${block%$'\n'}"* ]] ||
                echo "$1, from $file: ${block%%$'\n'*}"
            file=''
        elif [[ -n $file ]]; then
            block+=$line$'\n'
        fi
    done <"$1"
    [[ -z $file ]] || echo "$1, from $file: the block has no end"
}

# The check itself first.
mkdir -p "$scratch/chapter"
printf 'int a;\nint b;\nint c;\n' >"$scratch/chapter/some.cu"
printf '%s\n' "${fence}cpp some.cu" 'int b;' 'int c;' "$fence" >"$scratch/chapter/right.md"
printf '%s\n' "${fence}cpp some.cu" 'int a;' 'int c;' "$fence" "${fence}cpp none.cu" "$fence" \
    >"$scratch/chapter/wrong.md"
[[ -z $(wrong_excerpts "$scratch/chapter/right.md") ]] || complain "right excerpts are refused"
[[ $(wrong_excerpts "$scratch/chapter/wrong.md" | wc -l) == 2 ]] || complain "wrong excerpts pass"

for text in "$root"/chapters/*/README.md; do
    wrong=$(wrong_excerpts "$text")
    [[ -z $wrong ]] || complain "an excerpt is not what the file has: $wrong"
done
finish
