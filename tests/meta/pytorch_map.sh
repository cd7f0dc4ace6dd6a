#!/usr/bin/env bash
# chapters/pytorch_map.md: each name that it gives us is in the file that it links.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
map=$root/chapters/pytorch_map.md
checked=0
# shellcheck disable=SC2016  # the quotes are those of the page
while read -r file name; do
    checked=$((checked + 1))
    [[ -f $root/chapters/$file ]] || complain "$file is not there"
    grep -qw -- "$name" "$root/chapters/$file" 2>/dev/null || complain "$file has no $name"
done < <(grep -oE '\[[a-z0-9_.]+\]\([a-z0-9_./]+\), `[A-Za-z0-9_]+`' "$map" | sed -E 's/.*\(([^)]*)\), `(.*)`/\1 \2/')
((checked > 50)) || complain "only $checked names were found: has the form of the tables changed?"
finish
