#!/usr/bin/env bash
# The web edition: what its extension decides, a site of the whole book without a warning and without a dead link, with a page
# for each README, and that each mistake in a README is seen. It takes the packages that `./book web` installs.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
python=$root/build/web/packages/bin/python
if ! cmp -s "$root"/{tools/web,build/web/packages}/requirements.txt; then
    echo "SKIPPED: the web edition (Sphinx is not here: ./book web installs it)"
    exit 77
fi
cd "$root" || exit 1
sphinx() { "$python" -m sphinx -q -W --keep-going -b html -c "$root/tools/web" -d "$scratch/doctrees" "$@"; }  # BOOK SITE
broken_pages() {  # FOLDER: the first page of an EPUB that is no XML, with the reason
    "$python" - "$1" 2>&1 <<'END'
import pathlib, sys, xml.parsers.expat as expat
for page in sorted(pathlib.Path(sys.argv[1]).rglob("*.xhtml")):
    try:
        expat.ParserCreate().Parse(page.read_bytes(), True)
    except expat.ExpatError as error:
        sys.exit(f"{page}: {error}")
END
}

"$python" tests/meta/web/edition_test.py &>"$scratch/said" || complain "the extension's own tests fail: $(cat "$scratch/said")"

site=$scratch/site
sphinx -j 2 "$root" "$site" &>"$scratch/said" || complain "the site is not made without a warning: $(cat "$scratch/said")"
wrong=$("$python" tests/meta/web/site_links.py "$site") || complain "links of the site:"$'\n'"$wrong"
while read -r readme; do
    [[ -s $site/${readme%.md}.html ]] || complain "$readme has no page"
done < <(find README.md CONTRIBUTING.md CREDITS.md chapters common exercises plots tests/bench tools -name '*.md' ! -path 'tools/web/*')
while read -r page; do
    page=${page#"$site/"}
    [[ -e ${page%.html}.md || $page == index.html || $page == search.html || $page == chapters/*.html ]] || complain "$page has no README"
done < <(find "$site" -name '*.html' ! -path "$site/source/*" ! -path "$site/_*")
# Each message's page has its words as title, and a section's own text.
messages=$(grep -c '>A page to pass on: ' "$site/chapters/symptoms.html")
((messages == 10)) || complain "$messages messages of the symptoms have pages"
grep -q '<h1>Missing key(s) in state_dict<' "$site/chapters/missing-key-s-in-state-dict.html" || complain "a message's page has another title"
size=$(du -sb "$site" | cut -f 1)
((size < 10000000)) || complain "the site has $size bytes; 10 MB are the most"
pages=$(find "$site" -name '*.html' | wc -l)
((pages <= 300)) || complain "the site has $pages pages; 300 are the most"
lost=$(grep -rL 'README.html">DDP by Hand</a>' "$site/source" | head -n 3)
[[ ! $lost ]] || complain "pages of files without a way home: $lost"
for page in "$site"/chapters/[0-9]*/README.html; do
    chapter=$(basename "$(dirname "$page")")
    excerpts=$(grep -c '^<!-- excerpt: ' "chapters/$chapter/README.md")
    [[ $(grep -o '<figure class="excerpt"' "$page" | wc -l) == "$excerpts" ]] || complain "$page has not its $excerpts excerpts"
    ! grep -q '^## Files, in reading order' "chapters/$chapter/README.md" || grep -q 'marked ● are to be read first</summary>' "$page" ||
        complain "$page does not fold its files"
    grep -q '^## Predict first' "chapters/$chapter/README.md" || continue
    grep -q 'id="book-predictions"' "$page" || complain "$page asks no predictions"
done
# An EPUB of the whole book: with pages that readers open, and all chapters.
sphinx -j 2 -b epub "$root" "$scratch/book_epub" &>"$scratch/said" || complain "the EPUB gets warnings: $(cat "$scratch/said")"
broken=$(broken_pages "$scratch/book_epub") || complain "no reader opens this page of the EPUB: $broken"
for readme in chapters/[0-9]*/README.md; do
    [[ -s $scratch/book_epub/${readme%.md}.xhtml ]] || complain "the EPUB lacks $readme"
done
loading=$(grep -rl 'kernels.js' "$site" --include '*.html')
[[ $loading == "$site/chapters/02_kernels/README.html" ]] || complain "not only chapter 02 loads kernels that run in the page: $loading"
((failures == 0)) || finish

# ---- A little book: each mistake is a warning
book=$scratch/book
mkdir -p "$book"/{chapters/01_line,chapters/02_kernels,plots/reference,exercises/01_line}
cat >"$book/README.md" <<'END'
# A book
[One](chapters/01_line), [all](chapters/README.md)
END
cat >"$book/chapters/README.md" <<'END'
# Chapters
| | chapter | the question | minutes | needs |
|---|---|---|---|---|
| 01 | [line](01_line) | What? | 1 | |
| 02 | [kernels](02_kernels) | How? | 1 | |
END
printf '# Glossary\n\n- <a id="line"></a>**line** ([01](01_line)): What is straight. ([Itself](#line))\n' >"$book/chapters/glossary.md"
printf '# Exercises\n\n# Exercise a\n\n## Task b\n' >"$book/exercises/01_line/README.md"
printf 'int first() {\n    return 1;\n}\n' >"$book/chapters/01_line/main.cu"
printf 'int other;\n' >"$book/chapters/01_line/other.cu"
touch "$book"/chapters/02_kernels/{vector_add,race,tree}.cu
printf '<svg xmlns="http://www.w3.org/2000/svg"/>\n' >"$book/plots/reference/overlap_link_timeline.svg"
printf 'name,begin_ms,end_ms,rank,stream,overlap\nforward,1,2,0,compute,reference\n' >"$book/plots/reference/overlap_link_timeline.csv"
cat >"$book/chapters/01_line/README.md" <<'END'
# 01 A line

A [line](../glossary.md#line), [its file](main.cu), [another](other.cu), [its answer](../../solutions/01_line).
Another line has 2^24 points.

## Predict first

1. How long?

## The length

<!-- output: ./book run 01 -->
```text
$ ./book run 01
length 7 m
```

<!-- excerpt: 01_line/main.cu: int first -->
```cpp
// 01_line/main.cu
int first() {
    return 1;
}
```

![Lanes](../../plots/reference/overlap_link_timeline.svg)

## Your predictions

1. Seven: [The length](#the-length).
   <!-- measured: length ([0-9]+ m) => in all -->
END
fence="\`\`\`"
{
    printf '# 02 Kernels\n'
    for title in 'By grid_range: element i is computed by' 'Two threads at the same time add 1 to a sum' \
        'The same kernel without these barriers'; do
        printf '\n%s\n' "$fence"text '$ ./book run 02' "$title ..." "$fence"
    done
} >"$book/chapters/02_kernels/README.md"
page=$site/chapters/01_line/README.html
make_site() { sphinx "$book" "$site" &>"$scratch/said"; }
shows() { grep -qF -- "$1" "${2:-$page}" || complain "the page ${2:-} does not show '$1'"; }
hides() { ! grep -qF -- "$1" "${2:-$page}" || complain "the page ${2:-} shows '$1'"; }
rm -r "$site" "$scratch/doctrees"
make_site || complain "a right book gets warnings: $(cat "$scratch/said")"
shows '<a class="term reference internal" href="../glossary.html#line">'
shows '"line":"What is straight. (Itself)"' "$site/_static/terms.js"
[[ $(grep -o 'class="term' "$page" | wc -l) == 1 ]] || complain "a term is linked twice"
shows '2<sup>24</sup> points'
shows 'href="#line"' "$site/chapters/glossary.html"
shows 'its answer'
hides 'other.cu'
hides 'solutions'
hides '<!-- measured'
shows '"number": 1, "measured": "7 m (in all)"'
shows 'source/chapters/01_line/main.cu.html#L1">01_line/main.cu</a><span>lines 1 to 3<'
shows '0,compute,reference'
shows '<b id=L2>' "$site/source/chapters/01_line/main.cu.html"
[[ $(grep -c '<h1' "$site/exercises/01_line/README.html") == 1 ]] || complain "exercises have more than one title"
shows 'its answer' "$site/_static/sections.js"
hides 'int first' "$site/_static/sections.js"
shows '<figure class="live" data-program="tree" hidden><script type="application/json"' "$site/chapters/02_kernels/README.html"

shows '"saves": true'
sphinx -D book_public=1 -D book_address=https://forge.example/book -D html_baseurl=https://book.example "$book" "$site" &>"$scratch/said" || complain "a book with an address gets warnings: $(cat "$scratch/said")"
shows 'href="https://forge.example/book/blob/main/chapters/01_line/other.cu"'
shows '"saves": false'
shows '<meta property="og:image" content="https://book.example/_static/card.png">'


# On paper and in an EPUB there are no buttons, and all that they would open is there.
for builder in singlehtml epub; do
    sphinx -b "$builder" -D html_theme=basic -D html_theme_options.nosidebar=1 "$book" "$scratch/$builder" &>"$scratch/said" || complain "$builder gets warnings: $(cat "$scratch/said")"
done
for page in "$scratch/singlehtml/README.html" "$scratch/epub/chapters/01_line/README.xhtml"; do
    shows 'Seven' "$page"
    shows '01_line/main.cu, lines 1 to 3' "$page"
    hides '<button' "$page"
    hides 'source/' "$page"
    hides 'class="live"' "$page"
done
broken=$(broken_pages "$scratch/epub") || complain "no reader opens this page of the little EPUB: $broken"

# mistake WORDS FILE SED: the file with this change is refused with these words.
mistake() {
    cp "$book/$2" "$scratch/before"
    sed -i "$3" "$book/$2"
    ! cmp -s "$book/$2" "$scratch/before" || complain "there is nothing to change by $3"
    answers+=("$1")
}
# Makes the book with all mistakes so far, whose answers stand in lines of their own, and takes them back.
refuse_mistakes() {
    if sphinx -b dummy "$book" "$scratch/none" &>"$scratch/said"; then complain "a book with mistakes is made"; fi
    for words in "${answers[@]}"; do
        [[ $(grep 'WARNING: ' "$scratch/said" | grep -cF -- "$words") == 1 ]] || complain "'$words' is not said once, but: $(cat "$scratch/said")"
    done
    [[ $(grep -c 'WARNING: ' "$scratch/said") == "${#answers[@]}" ]] || complain "${#answers[@]} mistakes have other answers: $(cat "$scratch/said")"
    answers=()
    rm -r "$book" && cp -r "$scratch/right" "$book"
}
cp -r "$book" "$scratch/right"
answers=()
readme=chapters/01_line/README.md
mistake "$readme:3: WARNING: dead link: gone.cu" "$readme" 's/(main.cu)/(gone.cu)/'
mistake "dead link: the glossary has no entry 'lines'" "$readme" 's/#line)/#lines)/'
mistake "'the-end'" "$readme" 's/#the-length/#the-end/'
mistake "this excerpt is not in 01_line/main.cu" "$readme" 's/return 1/return 2/'
mistake "overlap_link_timeline.csv lacks the columns rank" plots/reference/overlap_link_timeline.csv 's/,rank//'
mistake "0 blocks with 'The same kernel without these barriers': the figure of tree has no place" chapters/02_kernels/README.md 's/these barriers/a barrier/'
mistake "'2'" README.md 's/README.md)/README.md#2)/'
refuse_mistakes
mistake "image file not readable" "$readme" 's/overlap_link_timeline.svg/gone.svg/'
refuse_mistakes
finish
