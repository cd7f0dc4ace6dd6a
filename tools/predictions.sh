# Sourced by ./book and by the tests: the questions that a chapter asks before it is run, what the reader answers, what the
# run measures, and what the chapter says. In a chapter's README.md:
#     ## Predict first                  what the questions are about, and then, as 1. 2. 3., the questions
#     ## Your predictions               the answers, as 1. 2. 3.; each links the section that explains it: [A tree](#a-tree).
#        <!-- measured: REGEX => NOUN --> may end an answer. REGEX is an extended regular expression with one group: in the first
#                                       line of the run's output that it matches, the group is what was measured; NOUN says of
#                                       what it is, and may be absent where the group's own words do
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

begin_predictions() {  # of run's $chapter, in its $readme; $answers is the file that keeps what the reader says
    readme=$root/chapters/$chapter/README.md answers=$root/my/$chapter/predictions
    [[ -n $(predictions "$readme" "Predict first" numbers) ]] ||
        bad_input "Chapter ${chapter%%_*} has no questions for --predict: run it without."
    if [[ ! -t 0 || ! -t 2 ]]; then
        [[ -s $answers ]] || bad_input "--predict asks questions on a terminal, and this is none, nor are there answers in" \
            "${answers#"$root/"} yet."
    fi
    make_own "$chapter"
    if [[ -t 0 && -t 2 ]]; then ask_predictions "$readme" "$answers"; fi
    output=$(mktemp 2>/dev/null) || fail "No file can be made in ${TMPDIR:-/tmp}: set TMPDIR to a folder that is yours."
    trap 'rm -f "$output"' EXIT
}

# predictions README HEADING about|numbers|text|measured|noun [NUMBER]: of that section, what stands before the first item; the
# numbers of all items; or an item's text, in one line, its regular expression, or the noun behind that.
predictions() {
    heading="## $2" wanted=$3 number=${4:-} awk '
        BEGIN { wanted = ENVIRON["wanted"] }
        /^```/ { is_code = !is_code }
        is_code { next }
        /^## / { is_here = $0 == ENVIRON["heading"]; item = "about"; next }
        !is_here { next }
        match($0, /^[0-9]+\. /) {
            item = substr($0, 1, RLENGTH - 2)
            if (wanted == "numbers") print item
            $0 = substr($0, RLENGTH)
        }
        /^ +<!-- measured: .* -->$/ {
            sub(/^ +<!-- measured: /, "")
            sub(/ -->$/, "")
            split($0, parts, " => ")
            if (item == ENVIRON["number"] && wanted == "measured") print parts[1]
            if (item == ENVIRON["number"] && wanted == "noun") print parts[2]
            next
        }
        item != "about" && !/^ / { item = "" }  # an item is one paragraph
        { sub(/^ +/, "") }
        wanted == "about" && item == "about" { print }
        wanted == "text" && item == ENVIRON["number"] && item != "" { text = text (text == "" ? "" : " ") $0 }
        END { if (text != "") print text }
    ' "$1"
}
sections() {  # README: as lines "tree-of-ranks 52 Tree of ranks", its sections with their anchors and lines
    awk '
        /^```/ { is_code = !is_code }
        !is_code && /^##+ / {
            sub(/^#+ /, "")
            gsub(/`/, "")
            anchor = tolower($0)
            gsub(/[][!-,.\/:-@\\^{|}~]/, "", anchor)
            gsub(/ /, "-", anchor)
            print anchor, NR, $0
        }' "$1"
}
spoken() { sed -E 's/\[([^]]*)\]\(#[^) ]*\)/"\1"/g; s/\[([^]]*)\]\([^) ]*[/.][^) ]*\)/\1/g; s/\*\*//g'; }  # Markdown, for a terminal
filled() { sed '/^    /!s/^./\x01&/' | fmt -p $'\x01' -w "$(($1 + 1))" | sed 's/^\x01//'; }  # WIDTH: a drawing or a table stays as it is
indent() { fmt -w 86 | sed "2,\$s/^/$1/"; }  # all lines of stdin but the first begin with these blanks

# ask_predictions README FILE: asks on the terminal, and adds what is answered to FILE.
ask_predictions() {
    local number answer before dated=
    printf '\nPredict first. Enter skips a question; your answers are kept in %s.\n' "${2#"$root/"}" >&2
    predictions "$1" "Predict first" about | spoken | filled 96 >&2
    for number in $(predictions "$1" "Predict first" numbers); do
        printf '%s. %s\n' "$number" "$(predictions "$1" "Predict first" text "$number" | spoken | indent '   ')" >&2
        before=$(prediction "$2" "$number")
        [[ -z $before ]] || printf '   (before: %s)\n' "$before" >&2
        read -rep "   > " answer || break
        [[ $answer == *[![:space:]]* ]] || continue
        [[ $dated ]] || date '+# %Y-%m-%d %H:%M' >>"$2"
        dated=yes
        printf '%s. %s\n' "$number" "$answer" >>"$2"
    done
    printf '\n' >&2
}
prediction() { { sed -n "s/^$2\. //p" "$1" 2>/dev/null || true; } | tail -n 1; }  # FILE NUMBER: the latest answer

# compare_predictions README FILE OUTPUT: prints each question with what was predicted, what the run's OUTPUT says, and what the
# chapter does.
compare_predictions() {
    local number text regex noun
    printf '\nWhat you predicted, and what came of it\n'
    for number in $(predictions "$1" "Predict first" numbers); do
        printf '\n%s. %s\n' "$number" "$(predictions "$1" "Predict first" text "$number" | spoken | indent '   ')"
        text=$(prediction "$2" "$number")
        printf '   you       %s\n' "${text:--}"
        regex=$(predictions "$1" "Your predictions" measured "$number")
        if [[ $regex ]] && text=$(measured "$regex" <"$3"); then
            noun=$(predictions "$1" "Your predictions" noun "$number")
            printf '   measured  %s\n' "$text${noun:+ ($noun)}"
        elif [[ $regex ]]; then
            printf '   measured  not in this run\n'
        fi
        text=$(predictions "$1" "Your predictions" text "$number")
        [[ -z $text ]] || printf '   the book  %s\n' "$(spoken <<<"$text" | indent '             ')"
        places "$1" "$text" | sed 's/^/             /'
    done
}
measured() {  # REGEX: its group, in the first line of stdin that it matches
    local line
    while IFS= read -r line; do
        [[ $line =~ $1 ]] && echo "${BASH_REMATCH[1]}" && return
    done
    return 1
}
places() {  # README TEXT: where the sections are that the text links, one a line
    local anchor line title
    { grep -oE '\]\(#[^)]*\)' <<<"$2" || true; } | sed 's/^](#//; s/)$//' | while read -r anchor; do
        read -r _ line title < <(sections "$1" | grep -m1 "^$anchor ") || continue
        echo "${1#"$root/"}:$line, \"$title\""
    done
}

# import_predictions FILE: adds what somebody has answered in the web edition to my/NN_name/predictions. The file has, for each
# chapter, "## NN_name", "# date", and the answers as "1. text"; it is not trusted, and what is there already is not added again.
import_predictions() {
    local text line chapter='' dated='' number added=0 place=0
    [[ -f $1 && -r $1 ]] || bad_input "There is no file $1: \"Save my answers\" in the web edition makes one."
    text=$(tr -d '\r' <"$1" | tr '\000-\011\013-\037\177' '[?*]')  # what is kept is printed on a terminal
    while IFS= read -r line; do
        place=$((place + 1))
        case $line in
            '## '*)
                chapter=$(chapters | grep -xF -- "${line#'## '}") || bad_input "$1:$place: there is no chapter '${line#'## '}'."
                ;;
            '# '[0-9]* | [0-9]*'. '?*) [[ $chapter ]] || bad_input "$1:$place: no line '## NN_name' says of which chapter this is." ;;
            '') ;;
            *) bad_input "$1:$place: this is no file of the web edition's answers." ;;
        esac
    done <<<"$text"
    while IFS= read -r line; do
        case $line in
            '## '*) chapter=${line#'## '} dated='' ;;
            '# '*) dated=$line ;;
            [0-9]*'. '?*)
                number=${line%%.*}
                [[ $number =~ ^[0-9]+$ && $(prediction "$root/my/$chapter/predictions" "$number") != "${line#*. }" ]] || continue
                make_own "$chapter"
                { [[ -z $dated ]] || printf '%s\n' "$dated"; printf '%s\n' "$line"; } >>"$root/my/$chapter/predictions"
                dated='' added=$((added + 1))
                ;;
        esac
    done <<<"$text"
    echo "Answers that were added to my/: $added."
}
