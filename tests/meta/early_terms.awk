# awk -f early_terms.awk chapters/glossary.md README...: as lines "README:LINE: TERM belongs to chapter NN", every term of the glossary
# that a README of an earlier chapter uses without a link, in the sentence with its first use, to the glossary or to that chapter.
# A use is the term as a whole word, or with an s; or what the entry says in <!-- checked as: ... -->, since "block" and
# "record" are English, too. Code, headings and comments are no sentences.

function whole_words(text) {  # text with each run of characters that are in no word made one space
    text = tolower(text)
    gsub(/[^a-z0-9_-]+/, " ", text)
    return " " text " "
}

# What the glossary has: "- <a id="ANCHOR"></a>**TERM** ([NN](NN_name)): ...", and perhaps a comment, until the next entry.
FNR == NR {
    if (match($0, /^- <a id="[^"]*"><\/a>\*\*[^*]*\*\* \(\[[0-9][0-9]\]/)) {
        terms++
        head = substr($0, RSTART, RLENGTH)
        chapter[terms] = substr(head, RLENGTH - 2, 2)
        anchor[terms] = head
        sub(/^- <a id="/, "", anchor[terms])
        sub(/".*/, "", anchor[terms])
        term[terms] = head
        gsub(/^[^*]*\*\*`?|`?\*\*.*/, "", term[terms])
        forms[terms] = term[terms] ", " term[terms] "s"
    } else if (/^- /) {
        print FILENAME ":" FNR ": this is no entry: " $0
    }
    if (match($0, /<!-- checked as: .* -->/)) forms[terms] = substr($0, RSTART + 17, RLENGTH - 21)
    if (/<!-- not checked -->/) forms[terms] = ""
    next
}

function end_sentence() {
    spoken = sentence
    gsub(/!\[[^]]*\]\([^)]*\)/, "", spoken)
    gsub(/\]\([^)]*\)/, "", spoken)
    spoken = whole_words(spoken)
    for (i = 1; i <= terms; i++) {
        if (here >= chapter[i] || seen[i]) continue
        count = split(forms[i], form, ", ")
        for (k = 1; k <= count && !seen[i]; k++) {
            if (!index(spoken, whole_words(form[k]))) continue
            seen[i] = 1
            if (!index(sentence, "/" chapter[i] "_") && !index(sentence, "glossary.md#" anchor[i] ")"))
                print file ":" begin ": " term[i] " belongs to chapter " chapter[i]
        }
    }
    sentence = ""
}
FNR == 1 {
    end_sentence()
    is_code = is_paragraph = 0
    here = file = FILENAME  # chapters/09_all_reduce/README.md
    sub(/\/[^\/]*$/, "", here)
    sub(/.*\//, "", here)
    here = substr(here, 1, 2)
    split("", seen)
}
/^```/ { is_code = !is_code; end_sentence(); next }
is_code { next }
/^#/ || /^<!--/ || /^ *$/ || /^<\/?details/ { end_sentence(); is_paragraph = 0; next }
/^    / && !is_paragraph { next }  # code: a paragraph's own lines have four blanks only below a list
/^([-*|>]|[0-9]+\.) / { end_sentence() }
{
    is_paragraph = 1
    line = $0
    gsub(/`[^`]*`/, "``", line)
    gsub(/<!--[^>]*-->/, "", line)
    while (match(line, /[.?!:][)*]* /)) {
        if (sentence == "") begin = FNR
        sentence = sentence " " substr(line, 1, RSTART + RLENGTH - 1)
        line = substr(line, RSTART + RLENGTH)
        end_sentence()
    }
    if (sentence == "") begin = FNR
    sentence = sentence " " line
}
/[.?!:][)*]*$/ { end_sentence() }
END { end_sentence() }
