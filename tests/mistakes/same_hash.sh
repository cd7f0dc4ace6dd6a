#!/usr/bin/env bash
# A training over an answer ends with the same bits as over the chapter's own all-reduce: same_hash.sh PROGRAM_OF_ANSWER PROGRAM
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
hash_of() { grep -oE 'equal to the bit: hash [0-9a-f]{16}' <<<"$output"; }
for ranks in 2 3; do
    expect 0 "equal to the bit" "$2" --quick --ranks $ranks
    right=$(hash_of)
    expect 0 "Each bucket goes round your ring" "$1" --quick --ranks $ranks
    [[ -n $right && $(hash_of) == "$right" ]] || complain "$ranks ranks: $(hash_of) over the answer, $right without it"
done
finish
