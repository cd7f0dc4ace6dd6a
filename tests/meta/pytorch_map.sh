#!/usr/bin/env bash
# chapters/pytorch_map.md and environment.md: each name of ours is in the file that they link. (Whether PyTorch has the names
# that are its own is asked by tests/golden/pytorch_versions.py.)
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
pages=("$root"/chapters/{pytorch_map,environment}.md)
checked=0
# shellcheck disable=SC2016  # the quotes are those of the page
while read -r file name; do
    checked=$((checked + 1))
    [[ -f $root/chapters/$file ]] || complain "$file is not there"
    grep -qw -- "$name" "$root/chapters/$file" 2>/dev/null || complain "$file has no $name"
done < <(grep -oE '\[[a-z0-9_.]+\]\([a-z0-9_./]+\), `[A-Za-z0-9_]+`' "${pages[@]}" | sed -E 's/.*\(([^)]*)\), `(.*)`/\1 \2/')
((checked > 50)) || complain "only $checked names were found: has the form of the tables changed?"
finish
