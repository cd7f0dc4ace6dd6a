#!/usr/bin/env bash
# chapters/pytorch_map.md and environment.md: each name of ours is in the file that they link. (Whether PyTorch has the names
# that are its own is asked by tests/golden/pytorch_versions.py.) The bytes in after_ddp.md are those of its formulas, and nccl.md has a row for
# each call of NCCL.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
pages=("$root"/chapters/{pytorch_map,environment,nccl}.md)
checked=0
# shellcheck disable=SC2016  # the quotes are those of the page
while read -r file name; do
    checked=$((checked + 1))
    [[ -f $root/chapters/$file ]] || complain "$file is not there"
    grep -qw -- "$name" "$root/chapters/$file" 2>/dev/null || complain "$file has no $name"
done < <(grep -oE '\[[a-z0-9_.]+\]\([a-z0-9_./]+\), `[A-Za-z0-9_]+`' "${pages[@]}" | sed -E 's/.*\(([^)]*)\), `(.*)`/\1 \2/')
((checked > 50)) || complain "only $checked names were found: has the form of the tables changed?"
calls() { grep -oE '\bnccl[A-Z][A-Za-z]*\(' "$root/chapters/09_all_reduce/libraries/nccl_communicator.cpp" | tr -d '(' | sort -u; }
rows() { sed -n 's/^| `\(nccl[A-Za-z]*\)(.*/\1/p' "$root/chapters/nccl.md" | sort -u; }
difference=$(diff <(calls) <(rows)) || complain "calls of NCCL that are made (<) and that have a row in nccl.md (>):"$'\n'"$difference"
# What chapters/after_ddp.md computes from the number of parameters: 2, 2 and 12 bytes of each; and the table of 8 ranks.
rows=$(awk -F ' *[|] *' '
    function gb(bytes) { return sprintf("%.1f", bytes / 1e9) }
    function want(i, bytes) { found = $i; sub(/.*[=:] /, "", found); gsub(/,| GB/, "", found); if (found != gb(bytes)) print "wrong: " $0 " should have " gb(bytes) }
    $2 ~ /^Llama 2 / {
        p = $3; gsub(/,/, "", p); if ($2 ~ / 7B/) seven = p
        want(4, 2 * p); want(5, 2 * p); want(6, 12 * p); want(7, 16 * p); rows++
    }
    $2 == "DDP" { want(5, 16 * seven); want(6, 2 * 7 / 8 * 2 * seven); rows++ }
    $2 == "ZeRO-1" { want(5, 4 * seven + 12 * seven / 8); want(6, 2 * 7 / 8 * 2 * seven); rows++ }
    $2 == "ZeRO-2" { want(5, 2 * seven + 14 * seven / 8); want(6, 2 * 7 / 8 * 2 * seven); rows++ }
    $2 == "tensor" || $2 == "expert" { want(5, 32 * 4 * 2 * 7 / 8 * 4096 * 4096 * 2); rows++ }
    $2 == "context" { want(5, 32 * 6 * 7 / 8 * 4096 * 4096 * 2); rows++ }
    $2 == "pipeline" { found = $5; if (found !~ sprintf("= %.1f MB$", 2 * 4096 * 4096 * 2 / 1e6)) print "wrong: " $0; rows++ }
    $2 == "data (DDP)" { want(5, 2 * 7 / 8 * 2 * seven); rows++ }
    $2 == "ZeRO-3, FSDP" { want(5, 16 * seven / 8); want(6, 3 * 7 / 8 * 2 * seven); rows++ }
    END { if (seven - 32 * (4 * 4096 ^ 2 + 3 * 4096 * 11008 + 2 * 4096) - 2 * 32000 * 4096 - 4096 != 0) print "wrong: 7B"; print rows " rows" }
' "$root/chapters/after_ddp.md")
[[ $rows == "12 rows" ]] || complain "after_ddp.md: $rows"
finish
