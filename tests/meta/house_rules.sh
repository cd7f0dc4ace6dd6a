#!/usr/bin/env bash
# The rules that no compiler checks (CONTRIBUTING.md): arrows run only backwards, common/ knows no
# chapter, chapter numbers stand in folder names and include paths only. house_rules.sh BUILD_FOLDER
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
finish
