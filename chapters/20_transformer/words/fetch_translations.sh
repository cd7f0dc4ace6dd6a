#!/usr/bin/env bash
# `./book data translations`: fetches the descriptions of Debian's packages, in English and in Italian.
#
#     fetch_translations.sh FOLDER
#
# apt knows them as its indices Translation-en and Translation-it. Here it keeps all that it fetches in FOLDER: the
# machine's own lists and caches stay as they are, and nothing is installed, so that root is not needed. FOLDER then has
# the files Translation-en and Translation-it, which the chapter reads.
set -euo pipefail

folder=$1
log=$folder/apt.log
fail() { printf '%s\n' "$*" >&2 && exit 1; }

if ! command -v apt-get >/dev/null || [[ ! -x /usr/lib/apt/apt-helper ]]; then
    fail "The translations come through apt, and this system has none: train on pairs of your own with --pairs FILE.tsv."
fi
if ! { mkdir -p "$folder"/{lists/partial,cache/archives/partial} && : >"$log"; } 2>/dev/null; then
    fail "$folder cannot be written to: check its permissions."
fi

# Options of -c come after the machine's own configuration. Without #clear a list of languages would only grow, and what
# the machine does after an update (cleaning its caches, say) is not for these lists.
cat >"$folder/apt.conf" <<END
#clear Acquire::Languages;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages { "en"; "it"; };
Acquire::IndexTargets::deb::Packages::DefaultEnabled "false";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Dir::State::Lists "$folder/lists";
Dir::Cache "$folder/cache";
END
apt() { apt-get -c "$folder/apt.conf" "$@"; }

printf 'fetching the descriptions of packages, some 12 MB' >&2
started=$SECONDS
apt update &>>"$log" </dev/null || true  # another source may be out of reach: what counts is what has come
printf ' (%s s)\n' "$((SECONDS - started))" >&2

for language in en it; do
    # shellcheck disable=SC2016  # apt fills in the name
    mapfile -t files < <(apt indextargets --format '$(FILENAME)' 'Created-By: Translations' "Language: $language" 2>>"$log")
    for file in "${files[@]}"; do
        # apt may keep an index compressed; its helper finds and unpacks it.
        [[ ! -e $file ]] || { /usr/lib/apt/apt-helper cat-file "$file" && echo; }
    done 2>>"$log" >"$folder/Translation-$language.new"
    grep -q "^Description-$language: " "$folder/Translation-$language.new" ||
        fail "apt has fetched no descriptions in the language '$language' from this system's sources (Debian's have them):" \
            "what it said is in $log."
done
for language in en it; do
    mv "$folder/Translation-$language.new" "$folder/Translation-$language"
done

descriptions() { grep -h '^Description-md5: ' "$folder/Translation-$1" | sort -u; }
printf '%s packages are described in English, %s in Italian, %s in both: %s\n' \
    "$(descriptions en | wc -l)" "$(descriptions it | wc -l)" \
    "$(comm -12 <(descriptions en) <(descriptions it) | wc -l)" "$folder" >&2
