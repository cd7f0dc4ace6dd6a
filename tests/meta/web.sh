#!/usr/bin/env bash
# The web edition: a site of the whole book without a warning and without a dead link, with a page for each README. Then, in a
# little book, what the extension decides, and each mistake that it sees. It takes the packages that `./book web` installs.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
python=$root/build/web/packages/bin/python
if ! cmp -s "$root"/{tools/web,build/web/packages}/requirements.txt; then
    echo "SKIPPED: the web edition (Sphinx is not here: ./book web installs it)"
    exit 77
fi
cd "$root" || exit 1
sphinx() {  # BUILDER BOOK FOLDER options...
    "$python" -m sphinx -q -W --keep-going -c "$root/tools/web" -d "$scratch/doctrees" -b "$1" "${@:4}" "$2" "$3" &>"$scratch/said"
}
makes() { sphinx "$@" || complain "$1 of $2 is not made without a warning: $(cat "$scratch/said")"; }

# ---- The book
site=$scratch/site
makes html "$root" "$site" -j 2
wrong=$("$python" tests/meta/web/site_links.py "$site") || complain "links of the site:"$'\n'"$wrong"
while read -r readme; do
    [[ -s $site/${readme%.md}.html ]] || complain "$readme has no page"
done < <(find README.md CONTRIBUTING.md CREDITS.md chapters common exercises plots tests/bench tools -name '*.md' ! -path 'tools/web/*')
messages=$(grep -c '>A page to pass on: ' "$site/chapters/symptoms.html")
((messages == 10)) || complain "$messages messages of the symptoms have pages"
grep -q '<h1>Missing key(s) in state_dict<' "$site/chapters/missing-key-s-in-state-dict.html" || complain "a message's page has another title"
size=$(find "$site" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
((size < 10000000)) || complain "the site has $size bytes; 10 MB are the most"
pages=$(find "$site" -name '*.html' | wc -l)
((pages <= 300)) || complain "the site has $pages pages; 300 are the most"
lost=$(grep -rL 'README.html">DDP by Hand</a>' "$site/source" | head -n 3)
[[ ! $lost ]] || complain "pages of files without a way home: $lost"
loading=$(grep -rl 'kernels.js' "$site" --include '*.html')
[[ $loading == "$site/chapters/02_kernels/README.html" ]] || complain "not only chapter 02 loads kernels that run in the page: $loading"
makes epub "$root" "$scratch/book_epub" -j 2
find "$scratch/book_epub" -name '*.xhtml' -exec "$python" -c 'import sys, xml.sax
for page in sys.argv[1:]: xml.sax.parse(page, xml.sax.ContentHandler())' {} + &>"$scratch/said" ||
    complain "a page of the EPUB is no XML, so that no reader opens it: $(tail -n 1 "$scratch/said")"
for readme in chapters/[0-9]*/README.md; do
    page=$site/${readme%.md}.html
    [[ -s $scratch/book_epub/${readme%.md}.xhtml ]] || complain "the EPUB lacks $readme"
    [[ $(grep -o '<figure class="excerpt"' "$page" | wc -l) == "$(grep -c '^<!-- excerpt: ' "$readme")" ]] || complain "$page has not all excerpts"
    ! grep -q '^## Files, in reading order' "$readme" || grep -q 'marked ● are to be read first</summary>' "$page" || complain "$page does not fold its files"
done
((failures == 0)) || finish

# ---- A little book
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
| 02 | [kernels](02_kernels) | How? | 1 | 01 |
END
cat >"$book/chapters/glossary.md" <<'END'
# Glossary

- <a id="line"></a>**line** ([01](01_line)): What is *straight*. ([Itself](#line))
- <a id="segment"></a>**line segment** ([02](02_kernels)): A part. <!-- checked as: line segment, segments -->
- <a id="point"></a>**point** ([02](02_kernels)): It has no size.
  <!-- not checked -->
END
printf '# Exercises\n\n# Exercise a\n\n## Task b\n' >"$book/exercises/01_line/README.md"
printf 'struct A {\n    int first() {\n        return 1; // <\n    }\n};\n' >"$book/chapters/01_line/main.cu"
touch "$book"/chapters/01_line/{read,other}.cu "$book"/chapters/02_kernels/{race,tree}.cu
printf '<svg xmlns="http://www.w3.org/2000/svg"/>\n' >"$book/plots/reference/overlap_link_timeline.svg"
printf 'name,begin_ms,end_ms,rank,stream,overlap\nforward,1,2,0,compute,</script>\n' >"$book/plots/reference/overlap_link_timeline.csv"
cat >"$book/chapters/01_line/README.md" <<'END'
# 01 A line

A [line](../glossary.md#line), [its file](main.cu), [another](other.cu), [its answer](../../solutions/01_line).
Another line has a line segment, segments and 2^24 points, 4 x (N - 1).

## Predict first

1. How long?

## Files, in reading order

| | file | says |
|---|---|---|
| ● | [one](read.cu) | x |

## The length

<!-- excerpt: 01_line/main.cu: int first -->
```cpp
// 01_line/main.cu
int first() {
    return 1; // <
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
    for title in 'Two threads at the same time add 1 to a sum' 'The same kernel without these barriers'; do
        printf '\n%s\n' "$fence"text '$ ./book run 02' "$title ..." "$fence"
    done
} >"$book/chapters/02_kernels/README.md"
page=$site/chapters/01_line/README.html
shows() { grep -qF -- "$1" "${2:-$page}" || complain "the page ${2:-} does not show '$1'"; }
hides() { ! grep -qF -- "$1" "${2:-$page}" || complain "the page ${2:-} shows '$1'"; }
rm -r "$site" "$scratch/doctrees"
makes html "$book" "$site"
shows '<h1>01 Line<'
shows '<strong>A line</strong>'
shows 'Leads to </span><a class="reference internal" href="../02_kernels/README.html">'
shows '<a class="term reference internal" href="../glossary.html#line">'
shows '<a class="term reference internal" href="../glossary.html#segment">line segment</a>, segments and'
[[ $(grep -o 'class="term' "$page" | wc -l) == 2 ]] || complain "other terms are linked than the first uses of two"
shows '"line":"What is straight. (Itself)"' "$site/_static/terms.js"
shows 'href="#line"' "$site/chapters/glossary.html"
shows 'class="next-page" href="../02_kernels/README.html"'
shows $'2<sup>24</sup> points, 4\xc2\xa0×\xc2\xa0(N\xc2\xa0-\xc2\xa01).'  # no line ends in it
shows 'its answer'
hides 'other.cu'
hides 'solutions'
hides '<!-- measured'
shows 'window.bookSaves'
shows 'source/chapters/01_line/main.cu.html#L2">01_line/main.cu</a><span>lines 2 to 4<'
shows 'forward,1,2,0,compute,\u003c/script>'
shows '<b id=L3>        <i class=k>return</i> <i class=m>1</i>; <i class=c1>// &lt;</i>' "$site/source/chapters/01_line/main.cu.html"
shows '>01_line</a>' "$site/source/chapters/01_line/read.cu.html"
[[ $(grep -c '<h1' "$site/exercises/01_line/README.html") == 1 ]] || complain "exercises have more than one title"
shows 'its answer' "$site/_static/sections.js"
hides 'int first' "$site/_static/sections.js"
shows '<figure class="live" data-program="tree" hidden><script type="application/json">' "$site/chapters/02_kernels/README.html"

makes html "$book" "$site" -D book_public=1 -D book_address=https://forge.example/book -D html_baseurl=https://book.example
shows 'href="https://forge.example/book/blob/main/chapters/01_line/other.cu"'
hides 'window.bookSaves'
shows '<meta property="og:image" content="https://book.example/_static/card.png">'

# On paper and in an EPUB there are no buttons, and all that they would open is there.
for builder in singlehtml epub; do
    makes "$builder" "$book" "$scratch/$builder" -D html_theme=basic -D html_theme_options.nosidebar=1
done
for page in "$scratch/singlehtml/README.html" "$scratch/epub/chapters/01_line/README.xhtml"; do
    shows 'Seven' "$page"
    shows '01_line/main.cu, lines 2 to 4' "$page"
    hides '<button' "$page"
    hides 'source/' "$page"
    hides 'class="live"' "$page"
done

# mistake WORDS FILE SED: the file with this change is refused with these words.
mistake() {
    cp "$book/$2" "$scratch/before"
    sed -i "$3" "$book/$2"
    ! cmp -s "$book/$2" "$scratch/before" || complain "there is nothing to change by $3"
    answers+=("$1")
}
answers=()
readme=chapters/01_line/README.md
mistake "$readme:3: WARNING: dead link: gone.cu" "$readme" 's/(main.cu)/(gone.cu)/'
mistake "dead link: the glossary has no entry 'lines'" "$readme" 's/#line)/#lines)/'
mistake "'the-end'" "$readme" 's/#the-length/#the-end/'
mistake "this excerpt is not in 01_line/main.cu" "$readme" 's/return 1/return 2/'
mistake "0 blocks with 'The same kernel without these barriers': the figure of tree has no place" chapters/02_kernels/README.md 's/these barriers/a barrier/'
mistake "'2'" README.md 's/README.md)/README.md#2)/'
if sphinx dummy "$book" "$scratch/none"; then complain "a book with mistakes is made"; fi
for words in "${answers[@]}"; do
    [[ $(grep 'WARNING: ' "$scratch/said" | grep -cF -- "$words") == 1 ]] || complain "'$words' is not said once, but: $(cat "$scratch/said")"
done
[[ $(grep -c 'WARNING: ' "$scratch/said") == "${#answers[@]}" ]] || complain "${#answers[@]} mistakes have other answers: $(cat "$scratch/said")"
finish
