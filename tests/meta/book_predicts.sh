#!/usr/bin/env bash
# ./book run NN --predict: asks a chapter's questions, keeps what is answered, runs, and compares.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
export PATH
PATH=$(machine_without nvidia-smi)
here=$scratch/book
little_book "$here"
cd "$here" || exit 1
cat >chapters/01_line/README.md <<'END_OF_README'
# 01 A line

## Predict first

A line is given **options**. Look at
[the other one](../02_slope) first.

1. How many options are there?
2. What does the last one say,
   and who has [said](#a-second-word) it?
3. Does it end?

This is no question. 4. This neither.

    5. Nor this.

## A word
### A second `word`: what, then?

1. Not asked.

## Your predictions

1. As many as were given, see [A word](#a-word).
   <!-- measured: with ([0-9]+) options => options that were given -->
2. What you typed: [A second word](#a-second-word-what-then), [elsewhere](../02_slope),
   [A word](#a-word).
   <!-- measured: ^second, (.*) -->
3. Yes.

## Try

4. Nothing.
END_OF_README
cat >chapters/01_line/main.cpp <<'END_OF_MAIN'
#include <cstdio>
#include <cstring>
#include <unistd.h>
int main(int argc, char** argv) {
    std::printf("this is a line with %d options, the last %s\n", argc - 1, argv[argc - 1]);
    if (std::strcmp(argv[argc - 1], "--fail") == 0)
        return 7;
    if (std::strcmp(argv[argc - 1], "--wait") == 0)
        sleep(600);
    std::puts("with 9 options\nsecond, [that] is (all)");
}
END_OF_MAIN
kept=my/01_line/predictions
# shellcheck disable=SC2317  # expect calls it
predict() { ./book run 1 --predict "$@"; }

# Without a terminal there is nobody to answer; nothing is built for that.
expect_sentence 2 "--predict asks questions on a terminal, and this is none, nor are there answers in $kept yet." predict
expect_sentence 2 "Chapter 02 has no questions for --predict: run it without." ./book run 2 --predict
expect_sentence 2 "There is no chapter '3'; there are: 01 line, 02 slope." ./book run --predict 3
[[ ! -e build && ! -e my ]] || complain "bad input has left something behind"

# Answers that are there are compared, the latest of each question; a run without --predict says nothing of them.
mkdir -p my/01_line
printf '%s\n' '# 2026-01-01 10:00' '1. two' '3. it does' '# 2026-01-02 10:00' '1. thr\ee & "more"' >"$kept"
cp "$kept" "$scratch/kept"
expect 0 'What you predicted, and what came of it

1. How many options are there?
   you       thr\ee & "more"
   measured  3 (options that were given)
   the book  As many as were given, see "A word".
             chapters/01_line/README.md:17, "A word"

2. What does the last one say, and who has "said" it?
   you       -
   measured  [that] is (all)
   the book  What you typed: "A second word", elsewhere, "A word".
             chapters/01_line/README.md:18, "A second word: what, then?"
             chapters/01_line/README.md:17, "A word"

3. Does it end?
   you       it does
   the book  Yes.' predict --quick
[[ $output == *$'\nthis is a line with 3 options, the last --quick\n'* ]] || complain "the run has not got its options: $output"
cmp -s "$kept" "$scratch/kept" || complain "nobody has answered, and yet the answers are: $(cat "$kept")"
expect 0 "the last --quick" ./book run 1 --quick
lacks "predicted"
expect 7 "the last --fail" predict --fail
lacks "predicted"
sed -i 's/measured: with/measured: without/' chapters/01_line/README.md
expect 0 "   measured  not in this run" predict
sed -i 's/measured: without/measured: with/' chapters/01_line/README.md

# With --predict, too, its output comes as it is made. And if ./book alone is ended, even by kill -9, what it runs ends with it, and
# lets go of a lock.
mkfifo "$scratch/output"
for call in "stdbuf -oL ./book run 1" "./book run 1 --predict"; do
    for signal in TERM HUP KILL; do
        exec 7>"$scratch/held" && flock 7
        $call --wait >"$scratch/output" 2>/dev/null </dev/null &
        exec 7>&-
        read -r -t 30 _ <"$scratch/output" || complain "$call prints nothing before its end"
        kill "-$signal" $!
        wait $! 2>/dev/null
        flock -w 30 "$scratch/held" true || complain "what $call runs goes on after SIG$signal"
    done
done

# Answers from the web edition are added, once, and only where the file is one of its files.
saved=$scratch/predictions.txt
# shellcheck disable=SC2016  # this is text
printf '## 01_line\n# 2026-01-03 10:00\n1. five $(touch got)\n3. it does\n## 02_slope\n1. up\e[2J\r\n' >"$saved"
for added in 2 0; do
    expect 0 "Answers that were added to my/: $added." ./book progress --import "$saved"
done
# shellcheck disable=SC2016
[[ $(tail -n 2 "$kept") == $'# 2026-01-03 10:00\n1. five $(touch got)' && ! -e got ]] || complain "this is imported: $(cat "$kept")"
[[ $(cat my/02_slope/predictions) == "1. up?[2J" ]] || complain "this is imported: $(cat my/02_slope/predictions)"
cp "$scratch/kept" "$kept"
expect_sentence 2 "There is no file gone: \"Save my answers\" in the web edition makes one." ./book progress --import gone
refuse() { printf %b "$1" >"$saved" && expect_sentence 2 "$saved:$2" ./book progress --import "$saved"; }  # FILE'S_TEXT WORDS
refuse '## 01_line\n1. six\n## 03_gone\n' "3: there is no chapter '03_gone'."
refuse '1. six\n' "1: no line '## NN_name' says of which chapter this is."
refuse '## 01_line\nsix\n' "2: this is no file of the web edition's answers."
cmp -s "$scratch/kept" "$kept" || complain "a file that is refused has been read: $(cat "$kept")"

# On a terminal it asks. Enter skips; what was said before stays, and is shown.
command -v script >/dev/null || { echo "SKIPPED: no script here to play a terminal" && finish; }
on_terminal() { printf %b "$1" | TERM=dumb script -qec "./book run 1 --predict --quick" /dev/null | tr -d '\r'; }
output=$(on_terminal 'four  \n\nit may\n')
for text in "Predict first. Enter skips a question; your answers are kept in $kept." \
    $'\nA line is given options. Look at the other one first.\n' $'1. How many options are there?\n' \
    '(before: thr\ee & "more")' $'\n2. What does the last one say, and who has "said" it?\n' '(before: it does)' \
    $'   you       four\n   measured  3 (options that were given)\n' $'   you       -\n   measured  [that] is (all)\n' $'   you       it may\n'; do
    [[ $output == *"$text"* ]] || complain "on a terminal '$text' is missing in: $output"
done
[[ $output != *"This is no question"* && $output != *"Not asked"* ]] || complain "that is no question: $output"
head -n 5 "$kept" | cmp -s - "$scratch/kept" || complain "earlier answers are lost: $(cat "$kept")"
tail -n +6 "$kept" | grep -qE '^# [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}$' || complain "no date: $(cat "$kept")"
[[ $(tail -n +7 "$kept") == $'1. four\n3. it may' ]] || complain "these answers are kept: $(cat "$kept")"
cp "$kept" "$scratch/kept"
output=$(on_terminal '\n \n\n')
cmp -s "$kept" "$scratch/kept" || complain "three times Enter adds: $(cat "$kept")"
[[ $output == *$'   you       four\n'* ]] || complain "a skipped question has lost its answer: $output"

if command -v git >/dev/null; then
    git init -q && git add -A && git -c user.name=reader -c user.email=reader@localhost commit -qm book
    [[ -z $(git status --porcelain) ]] || complain "the tree is dirty: $(git status --porcelain)"
    expect 0 "" ./book handout "$scratch/class"
    expect_sentence 2 "nor are there answers in $kept yet." "$scratch/class/book" run 1 --predict
fi
finish
