#!/usr/bin/env bash
# Fills the blocks of the READMEs, and of the pages beside them, that show code or what a run prints, so that none of them is pasted:
#     bash tools/make_readmes.sh [--check] [--only excerpt|output|slow] [--built FOLDER] [NN...]
# A comment says what the fenced block below it shows (make_readmes.sh makes a block that is not there yet):
#     <!-- excerpt: 09_all_reduce/ring.cu: void ring( -->       from the one line that has these words to the end of
#                                                               the function, class or statement which it begins
#     <!-- excerpt: 01_sgd/main.cpp: first words ... last -->   from one line to another
#     <!-- output: ./book run 07 --quick -->                    all that the command prints, the same in every run
#     <!-- output: ./book run 07: Title of a table -->          of that, from the one line that has these words to the
#                                                               next empty one (or, with ..., to the line with the last)
#     <!-- measured: ./book run 07: Title of a table -->        the same with times: its numbers differ from run to run
#     <!-- minutes -->                                          in the line below: how long the chapter, or the exercise, takes
# `slow` marks commands that run for more than a second or two. A file is named as #include names it. A measured block stays as
# it is if only its numbers and "names in quotes" are different (either of two ranks can be the first to say that it waits), since the
# text around it quotes them: to measure again, empty it. --check writes nothing, and says which blocks are stale. --only chooses the
# blocks of one kind (slow or not), and all minutes. --built runs the programs in FOLDER/bin, where ./book would build them first.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fence=$(printf '`%.0s' 1 2 3)
directive='^<!-- (slow )?(excerpt|output|measured): (.+) -->$'
check='' only='' built='' problems=0

say() { printf '%s\n' "$*" >&2; }
bad_input() { say "$*" && exit 2; }
complain() {  # ... of the block at $place
    say "$place: $*"
    problems=$((problems + 1))
}

# part FIRST LAST STYLE: the lines of stdin from the one that has the words FIRST, less its indentation. They end with
# the next line that has the words LAST; without LAST where the statement ends (STYLE is code) or before an empty line.
part() {
    first=$1 last=$2 style=$3 awk '
        function indentation(text) { return match(text, /[^ ]/) - 1 }
        function ends_statement(text) {
            gsub(/"([^"\\]|\\.)*"|\x27([^\x27\\]|\\.)\x27/, "", text)
            sub(/ *\/\/.*/, "", text)
            depth += gsub(/[({]/, "&", text) - gsub(/[)}]/, "&", text)
            return depth <= 0 && text ~ /[;}]$/
        }
        { line[NR] = $0 }
        index($0, ENVIRON["first"]) { places++; if (places == 1) begin = NR }
        END {
            if (places != 1) {
                printf "%d lines have the words \"%s\"; it must be one\n", places, ENVIRON["first"]
                exit 1
            }
            indent = indentation(line[begin])
            for (i = begin; i <= NR; i++) {
                if (ENVIRON["style"] != "code" && ENVIRON["last"] == "" && line[i] == "") exit 0
                if (ENVIRON["style"] == "code" && line[i] != "" && indentation(line[i]) < indent) break
                print substr(line[i], indent + 1)
                if (ENVIRON["last"] != "") {
                    if (i > begin && index(line[i], ENVIRON["last"])) exit 0
                } else if (ENVIRON["style"] == "code" && ends_statement(line[i])) {
                    exit 0
                }
            }
            if (ENVIRON["style"] != "code" && ENVIRON["last"] == "") exit 0
            printf "nothing ends what begins with \"%s\"\n", ENVIRON["first"]
            exit 1
        }' >"$scratch/part" && cat "$scratch/part" && return
    say "$place: $(tail -n 1 "$scratch/part")."
    return 1
}
# The words behind the colon are FIRST, or FIRST ... LAST.
first_words() { echo "${1%% ... *}"; }
last_words() { [[ $1 != *' ... '* ]] || echo "${1#* ... }"; }

excerpt() {  # FILE: WORDS
    local file=${1%%: *} words=${1#*: } path
    for path in "$file" "chapters/$file" ''; do [[ ! -f $path ]] || break; done
    if [[ -z $path || $words == "$1" ]]; then
        say "$place: an excerpt names a file that is there, a colon, and words of it: $1."
        return 1
    fi
    echo "$(comment_in "$path") $file"
    part "$(first_words "$words")" "$(last_words "$words")" code <"$path"
}
language_of() {
    case $1 in *.cu | *.cuh | *.cpp | *.hpp | *.h) echo cpp ;; *.py) echo python ;; *) echo bash ;; esac
}
comment_in() { [[ $(language_of "$1") == cpp ]] && echo // || echo '#'; }

output() {  # COMMAND[: WORDS]
    local command=${1%%: *} words=${1#*: } saved
    saved=$scratch/output.$(cksum <<<"$command" | tr -d ' ')  # one run serves all blocks that show some of it
    [[ -e $saved ]] || run "$command" >"$saved" || rm "$saved"
    [[ -e $saved ]] || return
    echo "\$ $command"
    if [[ $words == "$1" ]]; then
        cat "$saved"
    else
        part "$(first_words "$words")" "$(last_words "$words")" output <"$saved"
    fi
}
run() {  # COMMAND, as a reader who has no terminal
    local status=0
    timeout 300 bash -c "$(command_for "$1")" </dev/null 2>"$scratch/errors" | nameless || status=$?
    ((status == 0)) || say "$place: \`$1\` fails with exit code $status:"$'\n'"$(tail -n 5 "$scratch/errors")"
    return "$status"
}
command_for() {  # what a reader types or, where it is built, the program that ./book runs (on nodes, ./book itself)
    local words chapter=15
    read -ra words <<<"$1"
    if [[ -z $built || ${words[0]} != ./book || " cluster read " == *" ${words[1]} "* ]]; then
        echo "$1"
    elif [[ ${words[1]} == predict ]]; then
        echo "$built/bin/cluster_predict ${words[*]:2}"
    elif [[ ${words[1]} == bench || ${words[1]} == explore ]]; then
        echo "$built/bin/${words[1]}_${words[2]} ${words[*]:3}"
    else
        if [[ ${words[2]:-} == [0-9]* ]]; then chapter=${words[2]} && unset 'words[2]'; fi
        chapter=$(cd chapters && compgen -G "${chapter}_*")
        echo "$built/bin/${chapter#*_} ${words[*]:2}"
    fi
}
nameless() {  # nobody needs to know what this machine is called; columns stay columns
    name=$(uname -n) awk '
        {
            rest = $0
            text = ""
            while ((at = index(rest, ENVIRON["name"] "  ")) > 0) {
                text = text substr(rest, 1, at - 1) "node"
                rest = substr(rest, at + length(ENVIRON["name"]))
                for (i = length(ENVIRON["name"]); i < 4; i++) sub(/^ /, "", rest)
                for (i = 4; i < length(ENVIRON["name"]); i++) rest = " " rest
            }
            print text rest
        }'
}
# What differs from run to run made alike: numbers and their units, hashes, quoted names, and what is as wide as they are.
alike() {
    sed -E 's/"[^"]*"/""/g
            s/\b[0-9a-f]{12}([0-9a-f]{4}\b|…)/0/g
            s/-?[0-9]+([.,][0-9]+)*(e[-+]?[0-9]+)?( ?([kKMGT]i?)?B(\/s)?\b| ?[mnu]?s\b)?/0/g
            s/(─|█|▉|▊|▋|▌|▍|▎|▏)+/─/g; s/ +/ /g; s/ +$//' <<<"$1"
}

# ---- Minutes ----
# One to read 120 words or ten lines of code or output, or to write one line; five to think about a task; rounded to 5.
# reading_seconds: of the Markdown on stdin, without the table of the files and the hints.
reading_seconds() {
    awk -v fence="$fence" '
        index($0, fence) == 1 { is_code = !is_code; next }
        /^<details/ { is_hint = 1 }
        /^<\/details/ { is_hint = 0 }
        /^## / { is_files = /^## Files, in reading order/ }
        before == "<!-- minutes -->" { before = ""; next }
        { before = $0 }
        is_hint || is_files || /^</ { next }
        is_code || /^    / { lines += /[^ ]/; next }
        {
            gsub(/\]\([^)]*\)/, "")
            count = split($0, word)
            for (i = 1; i <= count; i++) words += word[i] ~ /[A-Za-z0-9]/
        }
        END { print int(words / 2 + 6 * lines) }'
}
lines() { cat "$@" | grep -c '[^[:space:]]'; }  # of these files, without empty ones
rounded() {  # SECONDS, as minutes
    local fives=$((($1 + 150) / 300))
    echo $((fives > 0 ? 5 * fives : 5))
}
minutes() {  # README EXERCISE: the line for a chapter or, in a README of exercises, for that one
    local folder=${1%/*}
    if [[ $2 && ! -d solutions ]]; then
        printf '%s\n' "$old"  # a book for students cannot count what is to be written
    elif [[ $2 ]]; then
        echo "*About $(minutes_of_exercise "$folder" "$2") minutes.*"
    else
        echo "*$(minutes_of_chapter "$folder" | sed 's/^\(.*\), \1$/\1 minutes; the text shows the whole program/
            s/, \(.*\)/ minutes to read and run, \1 with the files marked ●/').*"
    fi
}
marked_files() {  # README: the files of the first reading
    sed -n '/^| ● |/{ s/^| ● | *\([^|]*\) |.*/\1/; s/[^(]*(\([^)]*\))[^(]*/\1\n/g; p; }' "$1" | sed '/^$/d'
}
# minutes_of_chapter FOLDER: as "25 to 55, 60 to 105": to read and run it, and with the files of the first reading, less what the text
# shows of them. The first of two numbers is for who knows the subject; a student has estimated 2.2 times as long for the text, and 1.5
# times for the code.
minutes_of_chapter() {
    local files text code
    text=$(reading_seconds <"$1/README.md")
    mapfile -t files < <(marked_files "$1/README.md")
    code=$((6 * ($(cd "$1" && lines /dev/null "${files[@]}") - $(excerpts "$1/README.md" | lines))))
    echo "$(rounded "$text") to $(rounded $((text * 22 / 10)))," \
        "$(rounded $((text + code))) to $(rounded $((text * 22 / 10 + code * 15 / 10)))"
}
excerpts() { sed -nE "/^<!-- excerpt: /,/^$fence\$/{ \@^<!--|^$fence|^(//|#) [^ ]*/[^ ]*\$@d; p; }" "$1"; }  # README: their code
minutes_of_exercise() {  # FOLDER EXERCISE: to read text and contract, to think about each task, and to write the lines of the solution
    local text read written
    text=$(sed -n "/^# Exercise \`$2\`/,/^# Exercise \`/{ /^# /d; p; }" "$1/README.md")
    read=$(reading_seconds <<<"$text")
    if [[ -f $1/$2/stub.py ]]; then  # a program to read, and to mend
        written=$(diff "$1/$2/stub.py" "solutions/${1##*/}/$2.py" | grep -c '^>')
        rounded $((read + 6 * $(lines "$1/$2/stub.py") + 300 + 60 * written))
        return
    fi
    written=$(sed -n '\|^ *// stub|,\|^ *// end stub|{ \|^ *//|d; /[^[:space:]]/p; }' "solutions/${1##*/}/$2".c* | wc -l)
    rounded $((read + 6 * $(lines "$1/$2.hpp") + 300 * $(grep -c '^## Task' <<<"$text") + 60 * written))
}

# filled README: prints it with its blocks as they should be.
filled() {
    local lines i=0 end slow kind what old new shown exercise=''
    mapfile -t lines <"$1"
    while ((i < ${#lines[@]})); do
        place=$1:$((i + 1))
        row "$1" "${lines[i]}"
        [[ ! ${lines[i]} =~ ^'# Exercise `'([a-z0-9_]*) ]] || exercise=${BASH_REMATCH[1]}
        if [[ ${lines[i]} == '<!-- minutes -->' ]]; then
            old=${lines[++i]:-}
            new=$(minutes "$1" "$exercise")
            stale "$old" "$new"
            printf '%s\n' "$new"
            [[ -z $old ]] || i=$((i + 1))
            continue
        fi
        [[ ${lines[i++]} =~ $directive ]] || continue
        slow=${BASH_REMATCH[1]} kind=${BASH_REMATCH[2]} what=${BASH_REMATCH[3]} end=$i
        if [[ ${lines[i]:-} == "$fence"* ]]; then
            until ((++end >= ${#lines[@]})) || [[ ${lines[end]} == "$fence" ]]; do :; done
            end=$((end + 1))
        fi
        is_wanted "$slow" "$kind" || continue
        new=$("${kind/measured/output}" "$what") || { problems=$((problems + 1)) && continue; }
        ((end == i)) && old='' || old=$(printf '%s\n' "${lines[@]:i+1:end-i-2}")
        [[ $kind != measured || $(alike "$old") != "$(alike "$new")" ]] || continue
        if [[ $check && $old != "$new" ]]; then
            complain "this is not what it shows any more; run \`bash tools/make_readmes.sh\`:"
            diff <(echo "$old") <(echo "$new") | head -n 10 >&2
        fi
        shown=text
        [[ $kind != excerpt ]] || shown=$(language_of "${what%%: *}")
        printf '%s\n' "$fence$shown" "$new" "$fence"
        i=$end
    done
}
row() {  # README LINE: the line; the table of chapters has the minutes of each, and those of its exercises
    local begin='^(\| [0-9]{2} \| \[[a-z0-9_]*\]\(([0-9]{2}_[a-z0-9_]*)\) \|[^|]*\| )([0-9 to,]+ \| [0-9-]+)( \|.*)$' new=$2
    if [[ $1 == chapters/README.md && $2 =~ $begin ]]; then
        new=$(minutes_of_chapter "chapters/${BASH_REMATCH[2]}")
        new+=" | $(grep -s '^\*About' "exercises/${BASH_REMATCH[2]}/README.md" | awk '{ sum += $2 } END { print sum ? sum : "-" }')"
        stale "${BASH_REMATCH[3]}" "$new"
        new=${BASH_REMATCH[1]}$new${BASH_REMATCH[4]}
    fi
    printf '%s\n' "$new"
}
stale() {  # OLD NEW: minutes
    [[ ! $check || $1 == "$2" ]] || complain "\"$1\" is \"$2\" now; run \`bash tools/make_readmes.sh\`."
}
is_wanted() {  # SLOW KIND
    case $only in
        '') true ;;
        excerpt) [[ $2 == excerpt ]] ;;
        output) [[ $2 != excerpt && -z $1 ]] ;;
        slow) [[ $2 != excerpt && -n $1 ]] ;;
    esac
}

readmes=()
while (($#)); do
    case $1 in
        --check) check=yes ;;
        --only) only=${2-} && shift ;;
        --built)
            [[ -d ${2-} ]] || bad_input "--built takes a folder that has been built."
            built=$(cd "$2" && pwd) && shift
            ;;
        [0-9][0-9])
            compgen -G "chapters/$1_*/README.md" >/dev/null || bad_input "There is no chapter $1."
            mapfile -t -O ${#readmes[@]} readmes < <(compgen -G "chapters/$1_*/*.md")
            ;;
        *) bad_input "make_readmes.sh takes --check, --only KIND, --built FOLDER and chapters like 09, not '$1'." ;;
    esac
    shift
done
[[ $only =~ ^(excerpt|output|slow)?$ ]] || bad_input "--only takes excerpt, output or slow."
if ((${#readmes[@]} == 0)); then
    mapfile -t readmes < <({ find README.md chapters common exercises tools tests/bench -name README.md 2>/dev/null; compgen -G 'chapters/*.md'; compgen -G 'chapters/*/*.md'; } | sort -u)
fi
for readme in "${readmes[@]}"; do
    filled "$readme" >"$scratch/readme"
    [[ $check ]] || cmp -s "$scratch/readme" "$readme" || cat "$scratch/readme" >"$readme"
done
((problems == 0))
