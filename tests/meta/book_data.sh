#!/usr/bin/env bash
# ./book data translations, with a repository of this test's own in the place of Debian's: what it fetches, and that
# the machine's own lists stay as they are.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
if ! command -v apt-get >/dev/null || [[ ! -x /usr/lib/apt/apt-helper ]]; then
    echo "SKIPPED: the translations come through apt, and this system has none"
    exit 0
fi
chmod 755 "$scratch"  # apt fetches as a user of its own
little_book "$scratch/book"
book=$scratch/book/book
mkdir -p "$scratch/book/chapters/20_transformer/words"
cp "$root/chapters/20_transformer/words/fetch_translations.sh" "$scratch/book/chapters/20_transformer/words"
folder=$scratch/book/build/translations

describe() {  # describe LANGUAGE PACKAGE NUMBER TEXT
    printf 'Package: %s\nDescription-md5: %032d\nDescription-%s: %s\n\n' "$2" "$3" "$1" "$4"
}
release() {  # release DISTRIBUTION: says what it has, as apt wants it
    local file
    (cd "$scratch/repository/dists/$1" && {
        printf 'Suite: %s\nCodename: %s\nComponents: main\nArchitectures: all amd64 arm64\nSHA256:\n' "$1" "$1"
        find main -type f | while read -r file; do
            printf ' %s %s %s\n' "$(sha256sum "$file" | cut -d' ' -f1)" "$(stat -c %s "$file")" "$file"
        done
    } >"$scratch/Release" && mv "$scratch/Release" Release)
}
for distribution in both english; do
    main=$scratch/repository/dists/$distribution/main/i18n
    mkdir -p "$main"
    { describe en ring 1 "passes sums on" && describe en tree 2 "adds in pairs"; } >"$main/Translation-en"
done
describe it ring 1 "trasmette somme" >"$scratch/repository/dists/both/main/i18n/Translation-it"
gzip -k "$scratch/repository/dists/both/main/i18n/Translation-it"
release both
release english

# The machine's configuration, which the script reads first: the sources are ours, and a hook would leave a trace.
# shellcheck disable=SC2317  # expect calls it
with_source() {  # with_source DISTRIBUTION command...
    echo "deb [trusted=yes] file:$scratch/repository $1 main" >"$scratch/sources.list"
    cat >"$scratch/apt.conf" <<END
Dir::Etc::sourcelist "$scratch/sources.list";
Dir::Etc::sourceparts "/nonexistent";
Acquire::Languages { "none"; };
APT::Update::Post-Invoke { "touch $scratch/hook"; };
END
    APT_CONFIG=$scratch/apt.conf "${@:2}"
}
lists=$(ls -la --time-style=full-iso /var/lib/apt/lists /var/cache/apt)

expect 0 "2 packages are described in English, 1 in Italian, 1 in both: $folder" with_source both "$book" data translations
[[ $(cat "$folder/Translation-it") == "$(describe it ring 1 "trasmette somme")" ]] || complain "this is not the Italian file"
grep -q '^Description-en: adds in pairs$' "$folder/Translation-en" || complain "this is not the English file"
# Again, with what is there.
expect 0 "1 in both" with_source both "$book" data translations

expect 1 "no descriptions in the language 'it' from this system's sources" with_source english "$book" data translations
grep -q 'trasmette' "$folder/Translation-it" || complain "a fetch that failed has taken what was there"
[[ ! -e $scratch/hook ]] || complain "the machine's own hooks have run"
[[ $(ls -la --time-style=full-iso /var/lib/apt/lists /var/cache/apt) == "$lists" ]] || complain "the machine's lists were touched"

PATH=$(machine_without apt-get) expect_sentence 1 "this system has none: train on pairs of your own" "$book" data translations
rm -rf "$folder" && touch "$folder"
expect_sentence 1 "$folder cannot be written to: check its permissions." "$book" data translations
finish
