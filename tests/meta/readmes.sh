#!/usr/bin/env bash
# What the READMEs show is so: the code, the output of commands, the commands themselves, the links.
#     readmes.sh                         all of it but output, and make_readmes.sh itself on stale little READMEs
#     readmes.sh output|slow BUILD       output and options by the programs in BUILD/bin; slow: of long runs
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
cd "$root" || exit 1
# shellcheck source=tools/predictions.sh
. tools/predictions.sh
readmes() { find README.md CONTRIBUTING.md CREDITS.md chapters common exercises plots tools -name '*.md' | sort; }
# As lines "FILE ./book run 07 --ranks 5": every call in a code span, or in a line of its own.
# shellcheck disable=SC2016  # these dollars and backticks are text
commands() {
    readmes | xargs grep -HoE '`\./book [^`]*`|^    \./book .*|^\$ \./book .*' |
        sed -E 's/^([^:]*):[ `$]*(\.\/book)/\1 \2/; s/`$//; s/ +#.*//; s/ +$//'
}

if (($# == 2)); then
    bash tools/make_readmes.sh --check --only "$1" --built "$2" || complain "what READMEs show is not what runs print"
    [[ $1 == output ]] || finish
    while read -r file _ verb chapter options; do
        [[ $verb == run && $chapter == [0-9]* ]] || continue
        program=$(cd chapters && echo "${chapter}"_*)
        help=$("$2/bin/${program#*_}" --help)
        for option in $options; do  # --cpu, --gpu, --algorithm and --predict are for ./book itself
            [[ $option != --?* || " --cpu --gpu --algorithm --predict " == *" $option "* ]] || grep -qw -e "$option" <<<"$help" ||
                complain "$file: chapter $chapter has no option $option"
        done
    done < <(commands)
    # What a chapter says was measured is found in what its program prints.
    for chapter in chapters/[0-9]*/; do
        program=$2/bin/$(basename "${chapter#*_}")
        rm -f "$scratch/quick" "$scratch/full"
        for number in $(predictions "$chapter/README.md" "Your predictions" numbers); do
            regex=$(predictions "$chapter/README.md" "Your predictions" measured "$number")
            [[ -n $regex ]] || continue
            [[ -e $scratch/quick ]] || "$program" --quick >"$scratch/quick" 2>/dev/null </dev/null
            measured "$regex" <"$scratch/quick" >/dev/null && continue
            [[ -e $scratch/full ]] || "$program" >"$scratch/full" 2>/dev/null </dev/null
            measured "$regex" <"$scratch/full" >/dev/null ||
                complain "$chapter/README.md: nothing that the program prints matches the regular expression of prediction $number"
        done
    done
    finish
fi

# What make_readmes.sh makes of a small book.
book=$scratch/book
mkdir -p "$book/chapters/01_x"
cp -r book tools cmake "$book"
rm "$book/tools/explore/engine/README.md"  # it links chapters, which are not in this one
cat >"$book/chapters/01_x/x.cu" <<'END'
// Two functions.
template <typename T>
void first(int a,
           int b) {
    if (a) {
        b;
    } else {
        a;
    }
}
class Second {
    int member() const;
    int twin, end;
};
int twin();
int loop() {
    for (;;)
        a;
    call(a, "(",
         b);  // {
}
END
cat >"$book/say" <<'END'
echo "it is $1"
echo
echo "in $2 ms ($(uname -n)  ) 5 kB/s"
echo "and $(printf '%*s' "$2" '' | tr ' ' -)"
echo "rank $2 is in \"$1\""
exit "${3-0}"
END
readme=$book/chapters/01_x/README.md
make() { expect "$1" "$2" bash "$book/tools/make_readmes.sh" "${@:3}"; }
# shows WANTED COMMENT: what stands below the comment when the block is made.
shows() {
    printf '%s\n' before "<!-- $2 -->" behind >"$readme"
    make 0 ""
    [[ $(grep -v '^<!--\|^```' "$readme") == $'before\n'"$1"$'\nbehind' ]] || complain "$2 shows: $(cat "$readme")"
    make 0 "" --check 01
}
shows $'// 01_x/x.cu\ntemplate <typename T>\nvoid first(int a,\n           int b) {\n    if (a) {\n        b;\n    } else {\n        a;\n    }\n}' \
    'excerpt: 01_x/x.cu: template <'
shows $'// 01_x/x.cu\nif (a) {\n    b;\n} else {\n    a;\n}' 'excerpt: 01_x/x.cu: if (a) {'
shows $'// 01_x/x.cu\ncall(a, "(",\n     b);  // {' 'excerpt: 01_x/x.cu: call('
shows $'// 01_x/x.cu\nint member() const;\nint twin, end;' 'excerpt: 01_x/x.cu: member ... twin'
shows $'$ sh say 2 7\nit is 2\n\nin 7 ms (node) 5 kB/s\nand -------\nrank 7 is in "2"' 'output: sh say 2 7'
shows $'$ sh say 2 7\nin 7 ms (node) 5 kB/s\nand -------\nrank 7 is in "2"' 'output: sh say 2 7: in 7'
shows $'$ sh say 2 7\nit is 2\n\nin 7 ms (node) 5 kB/s' 'slow measured: sh say 2 7: it is ... ms'

# refuses WORDS COMMENT: it says so, and leaves the README as it was.
refuses() {
    printf '%s\n' "<!-- $2 -->" '```text' old '```' >"$readme"
    cp "$readme" "$scratch/before"
    make 1 "chapters/01_x/README.md:1: $1"
    make 1 "chapters/01_x/README.md:1: $1" --check
    cmp -s "$readme" "$scratch/before" || complain "$2 has changed its README: $(cat "$readme")"
}
refuses '2 lines have the words "twin"; it must be one.' 'excerpt: 01_x/x.cu: twin'
refuses '0 lines have the words "third"; it must be one.' 'excerpt: 01_x/x.cu: third'
refuses 'nothing ends what begins with "b;".' 'excerpt: 01_x/x.cu: b; ... member('
refuses 'an excerpt names a file that is there' 'excerpt: 01_x/y.cu: void first('
refuses "\`sh say 2 7 5\` fails with exit code 5:" 'output: sh say 2 7 5'
refuses '0 lines have the words "it was"; it must be one.' 'output: sh say 2 7: it was'

# stale COMMENT OLD NEW: a block in which OLD stands for NEW is found, and mended.
stale() {
    printf '%s\n' "<!-- $1 -->" >"$readme"
    make 0 ""
    cp "$readme" "$scratch/right"
    sed -i "s/$3/$2/" "$readme"
    ! cmp -s "$readme" "$scratch/right" || complain "there is no '$3' in $(cat "$readme")"
    make 1 "chapters/01_x/${readme##*/}:1: this is not what it shows any more" --check
    make 0 ""
    cmp -s "$readme" "$scratch/right" || complain "$1 is mended to: $(cat "$readme")"
}
stale 'excerpt: 01_x/x.cu: void first(' 'a;' 'b;'
readme=$book/chapters/01_x/deeper.md stale 'excerpt: 01_x/x.cu: void first(' 'a;' 'b;'
stale 'output: sh say 2 7' 'in 8 ms' 'in 7 ms'
stale 'measured: sh say 2 7' 'it was' 'it is'
printf '%s\n' '<!-- measured: sh say 2 7 -->' '```text' "\$ sh say 2 7" 'it is 31.5' '' 'in 900 us (node) 1.5e+2 MB/s' 'and -----' \
    'rank 1 is in "b.weight"' '```' >"$readme"
make 1 "" --check  # a rule of ASCII is text
eval "$(sed -n '/^alike() {/,/^}/p' "$root/tools/make_readmes.sh")"
[[ $(alike "cb6269ef4432…, 1eb703ba394d7d68, 3e-08") == "0, 0, 0" ]] || complain "hashes of another processor's BLAS are other words"
sed -i 's/^and.*/and -------/' "$readme"
cp "$readme" "$scratch/before"
make 0 "" --check
make 0 ""
cmp -s "$readme" "$scratch/before" || complain "a measured block was measured again: $(cat "$readme")"
printf '<!-- %s -->\n' 'excerpt: 01_x/x.cu: third' 'output: sh say 2 7 5' 'slow output: sh say 2 7 6' >"$readme"
for kind in excerpt output slow; do
    make 1 "README.md:" --check --only "$kind"
    [[ $(grep -c '^chapters' <<<"$output") == 1 ]] || complain "--only $kind looks at other kinds: $output"
done
expect_sentence 2 "There is no chapter 02." bash "$book/tools/make_readmes.sh" 02

# Minutes: of words, of code, of the files of the first reading, of an exercise; and the column of the overview.
times() { printf "$2%.0s" $(seq "$1"); }
mkdir -p "$book/exercises/01_x" "$book/solutions/01_x"
{
    printf '# 01 X\n\n<!-- minutes -->\n\n'
    printf '%s\n' '<!-- excerpt: 01_x/x.cu: loop() -->' '```cpp' '// 01_x/x.cu' "$(sed -n '/loop/,$p' "$book/chapters/01_x/x.cu")" '```'
    times 1200 'a [word](x) - '
    printf '\n\n    '
    times 25 'line\n\n    '
    # shellcheck disable=SC2016  # the backquotes are Markdown's
    printf '\n```text\n%s```\n## Files, in reading order\n\n| ● | [x.cu](x.cu), [y.cu](y.cu) | ' "$(times 25 'a line\n')"$'\n'
    times 1200 'word '
    printf '|\n| | [z.cu](z.cu) | no |\n\n## More\n'
} >"$readme"
cp "$readme" "$scratch/before"
{ times 150 'int i;\n\n' && times 49 '// why\n'; } >"$book/chapters/01_x/y.cu"  # x.cu has 21 lines
overview=$book/chapters/README.md && printf '*About %s minutes.*\n' 10 no 25 >"$book/exercises/01_x/README.md"
printf '%s\n' '| 01 | [x](01_x) | What? | 10, 10 | 5 | 00 |' '| 10 | no |' >"$overview"
make 1 'chapters/01_x/README.md:3: "" is "*25 to 55 minutes to read and run, 45 to 90 with the files marked ●.*" now' --check --only excerpt
[[ $output == *'chapters/README.md:1: "10, 10 | 5" is "25 to 55, 45 to 90 | 35" now'* ]] || complain "the overview is not looked at: $output"
make 0 ""
[[ $(sed 4d "$readme") == "$(cat "$scratch/before")" ]] || complain "the minutes have changed more: $(diff "$readme" "$scratch/before")"
[[ $(cat "$overview") == $'| 01 | [x](01_x) | What? | 25 to 55, 45 to 90 | 35 | 00 |\n| 10 | no |' ]] || complain "the overview is: $(cat "$overview")"
make 0 "" --check
times 1200 'a word ' >>"$readme"
make 1 'marked ●.*" is "*45 to 100 minutes to read and run, 65 to 135 with' --check
rm "$overview"
{
    # shellcheck disable=SC2016  # the backquotes are Markdown's
    printf '# Exercise `one`\n\n<!-- minutes -->\n\n%s\n## Task `a`: b\n## Task `c`: d\n<details>\n%s\n</details>\n' "$(times 600 'word ')" \
        "$(times 1200 'word ')"
    # shellcheck disable=SC2016
    printf '# Exercise `two`\n\n<!-- minutes -->\n*About 25 minutes.*\n## Task `e`: f\n'
} >"$book/exercises/01_x/README.md"
times 100 'int i;\n' | tee "$book/exercises/01_x/one.hpp" "$book/exercises/01_x/two.hpp" >"$readme"
{ printf 'no\n// stub: a\n//: yes\n' && times 10 'line\n\n' && printf '// end stub\nno\n'; } >"$book/solutions/01_x/one.cu"
printf '// stub: e\n%s\n// end stub\n' "$(times 10 'line\n')" >"$book/solutions/01_x/two.cpp"
make 1 'exercises/01_x/README.md:3: "" is "*About 35 minutes.*" now' --check
[[ $output != *25* ]] || complain "the second exercise is right: $output"
make 0 ""
[[ $(sed -n 4p "$book/exercises/01_x/README.md") == "*About 35 minutes.*" ]] || complain "the exercise takes: $(head -n 5 "$book/exercises/01_x/README.md")"
rm -r "$book"/{solutions,exercises}

# And the READMEs of this book.
bash tools/make_readmes.sh --check --only excerpt || complain "the code that READMEs show is not the book's"

# wrong_commands: as lines, those that ./book does not know.
help=$(./book help all | sed -e :join -e '$!N; s/\n    \([0-9a-z]\)/ \1/; t join' -e 'P; D')  # lists in one line each
knows() { grep -q "^$1:.* $2\b" <<<"$help"; }  # chapters 07, benches all_reduce
wrong_commands() {
    local file verb what rest
    while read -r file _ verb what rest; do
        case $verb in
            run | diff | plot | check | reset) [[ ${what:-12} != [0-9]* ]] || knows chapters "${what:-12}" ;;
            bench) knows benches "$what" ;;
            explore) knows explored "$what" ;;
            *) grep -q "^  ./book $verb\b" <<<"$help" ;;
        esac || echo "$file: there is no \`./book $verb $what $rest\`"
    done < <(commands)
}
# As lines "FILE:](TARGET)": every link that is not code.
# shellcheck disable=SC2016  # these dollars are awk's
links() {
    readmes | xargs awk '
        FNR == 1 { is_code = 0 }
        /^```/ { is_code = !is_code }
        !is_code {
            gsub(/`[^`]*`/, "")
            for (text = $0; match(text, /\]\([^)]*\)/); text = substr(text, RSTART + RLENGTH))
                print FILENAME ":" substr(text, RSTART, RLENGTH)
        }'
}
wrong_links() {
    local file link
    while IFS=: read -r file link; do
        link=${link#](}
        link=${link%%[)#]*}
        [[ -z $link || $link == http*:* || -e $(dirname "$file")/$link ]] || echo "$file: the link to $link leads nowhere"
    done < <(links)
}
# Every question that a chapter asks first is answered in it, with the place, and what is measured can be found.
wrong_predictions() {
    local readme number text anchor regex asked found
    for readme in chapters/[0-9]*/README.md; do
        asked=$(predictions "$readme" "Predict first" numbers | xargs)
        [[ $asked == "$(seq -s ' ' "$(wc -w <<<"$asked")")" ]] || echo "$readme: the questions are numbered $asked"
        if ! grep -q '^## Your predictions$' "$readme"; then
            [[ ! $asked ]] || echo "$readme: nothing answers its questions: it has no section Your predictions"
            continue
        fi
        [[ $asked == "$(predictions "$readme" "Your predictions" numbers | xargs)" ]] ||
            echo "$readme: it asks $asked and answers $(predictions "$readme" "Your predictions" numbers | xargs)"
        found=0
        for number in $(predictions "$readme" "Your predictions" numbers); do
            text=$(predictions "$readme" "Your predictions" text "$number")
            [[ -n $(places "$readme" "$text") ]] || echo "$readme: answer $number links no section of the chapter"
            regex=$(predictions "$readme" "Your predictions" measured "$number")
            [[ -n $regex ]] || continue
            found=$((found + 1))
            # An empty text matches the empty alternative, whatever the other is; 2 is the status of what cannot be compiled.
            [[ '' =~ (|$regex) ]] 2>/dev/null && ((${#BASH_REMATCH[@]} == 3)) ||
                echo "$readme: the regular expression of answer $number is not one with one group"
            # A bare number does not say of what it is: the group has words of its own, or a noun stands behind it.
            [[ $(predictions "$readme" "Your predictions" noun "$number") ]] ||
                sed 's/\[[^]]*\]//g; s/.*(//; s/).*//' <<<"$regex" | grep -qE '[a-z]{4}|^$' ||
                echo "$readme: what answer $number measures has no noun"
        done
        (($(grep -c '^ .*<!-- measured:' "$readme") == found)) ||
            echo "$readme: a regular expression for what is measured belongs to no answer"
    done
}

# The glossary is in alphabetical order, each entry links the chapter whose number it names, and links to entries lead to some.
wrong_glossary() {
    local anchor
    sed -n 's/^- <a id="\([^"]*\)".*/\1/p' chapters/glossary.md >"$scratch/anchors"
    tr -d '-' <"$scratch/anchors" | LC_ALL=C sort -cf 2>&1 | sed -n 's/.*disorder: /chapters\/glossary.md: not in order: /p'
    sort "$scratch/anchors" | uniq -d | sed 's/^/chapters\/glossary.md: twice: /'
    grep '^- ' chapters/glossary.md | grep -v '^- <a id="[a-z0-9-]*"></a>\*\*.*\*\* (\[\([0-9][0-9]\)\](\1_[a-z0-9_]*)): ' |
        sed 's/^/chapters\/glossary.md: this is no entry: /'
    links | grep -o 'glossary\.md#[^)]*' | sort -u | while IFS='#' read -r _ anchor; do
        grep -qxF -e "$anchor" "$scratch/anchors" || echo "chapters/glossary.md has no entry $anchor, to which a link leads"
    done
}
# Every chapter and every exercise says how long it takes, and in numbers that are counted only.
wrong_minutes() {
    local readme wanted
    for readme in {chapters,exercises}/[0-9]*/README.md; do
        wanted=$(grep -c '^# Exercise ' "$readme")
        (($(grep -cx '<!-- minutes -->' "$readme") == (wanted > 0 ? wanted : 1))) ||
            echo "$readme: a chapter and each exercise have one line <!-- minutes -->"
        ! sed '/^## /,$d; /^<!-- minutes/,/^$/d' "$readme" | grep -qE '[0-9] minutes\.' || echo "$readme: minutes that nobody counts"
    done
}
# A chapter's title begins with its number.
wrong_titles() {
    local readme number
    for readme in chapters/[0-9]*/README.md; do
        number=${readme#chapters/} && number=${number%%_*}
        [[ $(head -n 1 "$readme") == "# $number "* ]] || echo "$readme: its title does not begin with $number"
    done
}
# A page (its chapter is one file) is shown by its README line for line, each line once, in at most 1,500 words of prose.
shown() { awk '/^```/ { is_code = !is_code; first = is_code && excerpt; excerpt = 0; next } is_code && first == 1 { first = 2; next }
    is_code && first && NF; /^<!-- excerpt: / { excerpt = 1 }' "$1"; }
wrong_pages() {
    local readme page
    while read -r readme; do
        page=${readme%/*}
        page=$page/${page#*_}.cpp
        diff <(shown "$readme") <(grep -v '^$' "$page") >/dev/null || echo "$readme does not show every line of $page once: $(
            diff <(shown "$readme") <(grep -v '^$' "$page") | sed -n 2p)"
        (($(words_of "$readme") <= 1500)) || echo "$readme has $(words_of "$readme") words of prose; 1,500 are the most"
    done < <(sed -n 's|^ddp_add_chapter(\([0-9a-z_]*\) PAGE).*|chapters/\1/README.md|p' chapters/CMakeLists.txt)
}
# The top README is read in the first ten minutes: 700 words of prose are the most. A chapter is read in an evening or two: its README
# has at most 3,800 words of prose, what it marks with ● at most 1,000 lines, and both together take at most two hours.
wrong_lengths() {
    local readme lines minutes
    (($(words_of README.md) <= 700)) || echo "README.md has $(words_of README.md) words of prose; 700 are the most"
    for readme in chapters/[0-9]*/README.md; do
        (($(words_of "$readme") <= 3800)) || echo "$readme has $(words_of "$readme") words of prose; 3,800 are the most"
        lines=$(cd "${readme%/*}" && marked_files README.md | xargs -r cat | wc -l)
        ((lines <= 1000)) || echo "$readme marks $lines lines with ●; 1,000 are the most"
        minutes=$(sed -n '/^<!-- minutes -->$/{ n; s/.* \([0-9]*\) to [0-9]* with the files marked.*/\1/p; }' "$readme")
        ((${minutes:-0} <= 120)) || echo "$readme takes $minutes minutes with the files marked ●; 120 are the most"
    done
}
eval "$(sed -n '/^marked_files() {/,/^}/p' tools/make_readmes.sh)"
# shellcheck disable=SC2016  # the backquotes are Markdown's
words_of() { sed '/^```/,/^```/d; /^<!--/d; /^\*[0-9].* minutes/d; /^|/d; /^    /d; s/](\([^)]*\))//g' "$1" | tr -cs "[:alnum:]'./-" '\n' | grep -c '[[:alnum:]]'; }
# Every other chapter names, once, a part of a page that its own code replaces: [`name`](../00_x/x.cpp).
wrong_parts() {
    local readme page part
    page=$(sed -n 's|^ddp_add_chapter(\(\([0-9]*\)_\([0-9a-z_]*\)\) PAGE).*|\1/\3.cpp|p' chapters/CMakeLists.txt)
    for readme in chapters/[0-9]*/README.md; do
        [[ $readme != "chapters/${page%/*}/"* ]] || continue
        part=$(grep -oF "](../$page)" "$readme" | wc -l)
        ((part == 1)) || echo "$readme links $page $part times, not once"
        part=$(sed -n "s|.*\[\`\([A-Za-z_]*\)\`\](\.\./$page).*|\1|p" "$readme")
        grep -qE "(struct $part \{|[a-zA-Z:>] $part\()" "chapters/$page" || echo "$readme: $page has no function or struct '$part'"
    done
}
# Words that no native says, in prose.
wrong_voice() {
    local page words many
    for page in README.md CREDITS.md {tools,common/cuda_on_cpu}/README.md chapters/*.md chapters/[0-9]*/*.md exercises/[0-9]*/README.md exercises/*/labs/*.md; do
        [[ -f $page ]] || continue
        # shellcheck disable=SC2016  # the backquotes are Markdown's
        sed -E '/^```/,/^```/d; /^<!--/d; /^    /d; s/`[^`]*`//g; s/\]\([^)]*\)//g; s/there (is|are) no |no (longer|faster)|hid[a-z]* [^.]*behind|behind the scenes|(leav|left)[a-z]* ([a-z]+ ){0,3}behind//gI' \
            "$page" >"$scratch/prose"
        words='\bmay not (be|[a-gi-z])|\bwhoever\b|\btakes it that\b|^After this chapter|\bfrom (chapter |step )?[a-z0-9]+ [^.,;:|]{1,30} on[.,;:]'
        words+='|\b(is|are) no [a-z]+|\b(no|some)body\b|\bbehind\b|[0-9] [a-z]+ a (step|rank|node|second)\b'
        many=$(grep -oiE '\b(that|those) of\b' "$scratch/prose" | wc -l)
        ((many <= 2)) || echo "$page says 'that of' or 'those of' $many times"
        grep -noiE "$words" "$scratch/prose" | sed "s|^[0-9]*:|$page says: |"
    done
}
early_terms() { awk -f "$root/tests/meta/early_terms.awk" chapters/glossary.md chapters/[0-9]*/README.md exercises/[0-9]*/README.md; }

(($(commands | wc -l) > 50)) || complain "these are not the commands of the READMEs: $(commands)"
(($(links | wc -l) > 50)) || complain "these are not the links of the READMEs: $(links)"
wrong=$(wrong_commands; wrong_links; wrong_predictions; wrong_glossary; wrong_minutes; wrong_titles; wrong_pages; wrong_lengths; wrong_parts; wrong_voice; early_terms)
[[ -z $wrong ]] || complain "$wrong"
# Both can fail.
# shellcheck disable=SC2016  # these backticks are text
printf '%s\n' '[a](x.cu), [b](01_x/y.cu), [c](https://nowhere) `./book run 01`, `./book fly`' '    ./book run 77 --quick' \
    '```cpp' '[this](int i)' '```' 'or `[that](int j)`' '$ ./book bench nothing' >"$readme"
cd "$book" && mkdir -p common exercises plots tools && touch README.md CONTRIBUTING.md CREDITS.md
wrong=$(wrong_commands && wrong_links)
[[ $(wc -l <<<"$wrong") == 4 && $wrong == *'book fly'*'book run 77'*'book bench nothing'*'link to 01_x/y.cu'* ]] ||
    complain "of wrong commands and links these are found: $wrong"

# A wrong prediction of each kind.
asks='## Predict first\n\n1. What?\n2. Who?\n\n## A tree\n\n'
answers='## Your predictions\n\n1. That. [A tree](#a-tree)\n   <!-- measured: ^x ([0-9]+) => trees -->\n2. They. [A tree](#a-tree)\n'
stray='   <!-- measured: (x) -->\n'
# mistaken WORDS TEXT: what is said of a README with this text.
mistaken() {
    printf %b "$2" >"$readme"
    wrong=$(wrong_predictions)
    [[ $wrong == "${1:+chapters/01_x/README.md: }$1" ]] || complain "not '$1' but '$wrong' is said of: $(cat "$readme")"
}
mistaken "" "$asks$answers"
mistaken "nothing answers its questions: it has no section Your predictions" "$asks"
mistaken "it asks 1 2 and answers 1" "$asks${answers%2. *}"
mistaken "the questions are numbered 1 3" "${asks/2. /3. }${answers/2. /3. }"
mistaken "answer 1 links no section of the chapter" "$asks${answers/'#a-tree'/'#tree'}"
mistaken "what answer 1 measures has no noun" "$asks${answers/' => trees'/}"
mistaken "" "$asks${answers/'([0-9]+) => trees'/'([0-9]+ trees)'}"
for regex in '^x [0-9]+' '^x ([0-9]+) (s)' '^x ([0-9]+'; do
    mistaken "the regular expression of answer 1 is not one with one group" "$asks${answers/'^x ([0-9]+)'/$regex}"
done
mistaken "a regular expression for what is measured belongs to no answer" "$stray$asks$answers"
mistaken "a regular expression for what is measured belongs to no answer" "$asks$answers\n$stray"

# Glossaries with one fault each, and terms that are used too early.
entry() { printf -- '- <a id="%s"></a>**%s** ([%s](%s)): %s\n' "$1" "${1/-/ }" "${2%%_*}" "$2" "${3-It is that.}"; }
mkdir -p exercises/01_x
printf '%s\n' '[a](../../chapters/glossary.md#alloy), [b](../../chapters/glossary.md#ally)' >exercises/01_x/README.md
{ entry all-in 01_x && entry alloy 02_y && entry allay 01_x && entry allay 01_x && entry alloy 02_y | sed 's/\[02\]/[03]/'; } >chapters/glossary.md
wrong=$(wrong_glossary)
[[ $wrong == *': not in order: allay'*': twice: allay'*'glossary.md: this is no entry: - <a id="alloy">'*'has no entry ally, to which'* ]] ||
    complain "of the glossary's faults these are found: $wrong"
{ entry alloy 01_x && entry block 02_y 'A thread block. <!-- checked as: block of threads, blocks of threads -->' &&
    entry hash-tag 02_y && entry host 02_y '<!-- not checked -->'; } >chapters/glossary.md
: >exercises/01_x/README.md
# early LINES TEXT: the terms that are named in a README of chapter 01, as lines "5 block"
early() {
    printf '%b\n' "$2" >"$readme"
    wrong=$(early_terms | sed -n 's|^chapters/01_x/README.md:\([0-9]*\): \(.*\) belongs to chapter 02$|\1 \2|p')
    [[ $wrong == "$(printf %b "$1")" ]] || complain "not '$1' but '$wrong' is used too early in: $(cat "$readme")"
}
early '1 block' 'These blocks\nof threads come early.'
early '3 block\n3 hash tag' 'One.\n\nHash-tags are not meant. But *hash tags*\n(and a block of threads).\nAnd a hash tag again.'
early '' 'See [the next chapter](../02_y) for a hash tag. And a hash tag again.'
early '' 'It is (chapter [02](../02_y) has it: a\n[hash tag](../glossary.md#hash-tag)).'
early '1 hash tag' 'A hash tag. It is linked later: a [hash tag](../glossary.md#hash-tag).'
early '2 hash tag' '- One [02](../02_y)\n- A hash tag'
# shellcheck disable=SC2016  # these backticks are text
early '' '# A hash tag\n\n    a hash tag\n\n```\na hash tag\n```\n<!-- hash tag --> `hash tag` ![A hash tag](x.svg)'
printf 'A hash tag.\n' >exercises/01_x/README.md
[[ $(early_terms) == "exercises/01_x/README.md:1: hash tag belongs to chapter 02" ]] || complain "exercises are not looked at: $(early_terms)"

printf '# 02 X\n' >"$readme"
wrong=$(wrong_titles; wrong_minutes)
[[ $wrong == *"01_x/README.md: its title does not begin with 01"*"01_x/README.md: a chapter and each exercise have one line <!-- minutes -->" ]] ||
    complain "of a chapter with another number and without minutes is said: $wrong"

# A page of which a line is left out, shown twice, changed or out of its place; and one with too many words.
echo 'ddp_add_chapter(00_x PAGE)' >chapters/CMakeLists.txt
mkdir chapters/00_x && printf 'one\n\ntwo\n' >chapters/00_x/x.cpp
page() {  # WORDS LINE...: what is said of a README that shows these blocks
    local line
    for line in "${@:2}"; do printf '%b\n' 'Words.' '<!-- excerpt: x -->' '```cpp' "// 00_x/x.cpp\n$line" '```'; done >chapters/00_x/README.md
    wrong=$(wrong_pages)
    [[ $wrong == "${1:+chapters/00_x/README.md }$1"* && ($1 || ! $wrong) ]] || complain "not '$1' but '$wrong' is said of the page"
}
page "" 'one\n\ntwo'
page "does not show every line of chapters/00_x/x.cpp once: > two" one
page "does not show every line of chapters/00_x/x.cpp once: < two" one two two
page "does not show every line" two one
[[ $(wrong_parts) == *" links 00_x/x.cpp 0 times, not once"* ]] || complain "a chapter without a part of the page passes"
printf 'one\ntwo\n' >chapters/00_x/x.cpp
# shellcheck disable=SC2016  # the backquotes are Markdown's
{ printf '<!-- excerpt: x -->\n```cpp\n//\none\ntwo\n```\n' && times 1501 'word '; } >chapters/00_x/README.md
[[ $(wrong_pages) == "chapters/00_x/README.md has 1501 words of prose; 1,500 are the most" ]] || complain "1501 words pass: $(wrong_pages)"
{ printf '| a table |\n    code\n' && times 700 'word '; } >README.md
[[ ! $(wrong_lengths) ]] || complain "700 words in the top README are too many"
# A chapter at its three limits, and beyond each of them.
: >README.md
times 500 'int i;\n' | tee chapters/01_x/one.cu >chapters/01_x/two.hpp
long() {  # SENTENCE WORDS MINUTES: what is said of a README with so many words
    {
        times "$2" 'word '
        printf '\n\n<!-- minutes -->\n*60 to 90 minutes to read and run, %s to 200 with the files marked ●.*\n\n' "$3"
        printf '%s\n' '| ● | [one.cu](one.cu), [two.hpp](two.hpp) | x |' '| | [x.cu](x.cu) | x |'
    } >"$readme"
    wrong=$(wrong_lengths)
    [[ $wrong == "${1:+chapters/01_x/README.md }$1" ]] || complain "not '$1' but '$wrong' is said of a chapter of $2 words and $3 minutes"
}
# shellcheck disable=SC2016  # the backquotes are Markdown's
printf '%s\n' 'Whoever reads this may not be here, from 16 KiB on. `Whoever` is code. You may not have one.' 'That of 1, those of 2, that of 3.' \
    'It is no lesson. Nobody waits behind it for 5 bytes a step.' 'There is no step now that hides behind it; it is no longer so from now on.' >"$readme"
mkdir chapters/11_x && echo 'It leaves a file behind, and nobody sees it.' >chapters/11_x/README.md
[[ $(wrong_voice | sed 's/.* says:* //' | paste -sd ,) == "'that of' or 'those of' 3 times,Whoever,may not be,from 16 KiB on.,is no lesson,Nobody,behind,5 bytes a step,nobody" ]] ||
    complain "of words that no native says is said: $(wrong_voice)"
long "" 3800 120
long "has 3801 words of prose; 3,800 are the most" 3801 120
long "takes 125 minutes with the files marked ●; 120 are the most" 3800 125
echo >>chapters/01_x/two.hpp
long "marks 1001 lines with ●; 1,000 are the most" 3800 120
finish
