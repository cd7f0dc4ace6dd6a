#!/usr/bin/env bash
# A training over an answer ends with the same bits as over the chapter's own all-reduce: same_hash.sh PROGRAM_OF_ANSWER PROGRAM
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
hash_of() { grep -oE 'equal to the bit: hash [0-9a-f]{16}' <<<"$output"; }
expect 0 "equal to the bit" "$2" --quick --ranks 3
right=$(hash_of)
expect 0 "Each bucket goes round your ring" "$1" --quick --ranks 3
[[ -n $right && $(hash_of) == "$right" ]] || complain "$(hash_of) over the answer, $right without it"
finish
