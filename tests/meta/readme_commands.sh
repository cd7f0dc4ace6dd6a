#!/usr/bin/env bash
# readme_commands.sh BUILD [NN...]: the runs that READMEs print work as they are printed, by ./book, with the pictures behind them.
# Each is made with --quick (00 knows none); NN: of these chapters only.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
bin=$(cd "$1" && pwd)/bin
shift

# A book whose folder out is its own, and whose programs are those of BUILD: nothing is built here.
here=$scratch/book
mkdir -p "$here/build/cpu" "$scratch/tools"
ln -s "$bin" "$here/build/cpu/bin"
ln -s -t "$here" "$root"/{chapters,common,exercises,solutions,tests,tools,cmake,CMakeLists.txt,CMakePresets.json}
cp -r "$root"/{book,plots} "$here"  # both look for out beside themselves
# shellcheck disable=SC2016  # these dollars are for the tool
printf '#!/bin/sh\n[ "$1" != --version ] || echo cmake version 3.25.1\n' >"$scratch/tools/cmake"
chmod +x "$scratch/tools/cmake"
export PATH=$scratch/tools:$PATH
cd "$here" || exit 1

# As lines: every `./book run NN ...` in a code span, in a line of its own, or above an output, with the variables before it.
# shellcheck disable=SC2016  # these dollars and backticks are text
commands() {
    find -L "$root"/README.md chapters -name '*.md' -print0 | xargs -0 cat |
        grep -oE '`([A-Z_]+=[^ `]+ )?\./book run[^`]*`|^    ([A-Z_]+=[^ ]+ )?\./book run.*|^\$ ([A-Z_]+=[^ ]+ )?\./book run.*' |
        sed -E 's/^[ `$]*//; s/`$//; s/ 2>&1.*//; s/ +#.*//; s/ +$//; s/ --quick( |$)/\1/; s| /tmp/run| '"$scratch"'/run|' |
        grep -E 'run ([0-9]|--|$)' | sort -u
}
# Not here: nodes of a cluster, data that somebody must fetch, an exercise of the reader's, questions, a file of another run, GPUs, and a
# build of its own, whose race the test kernels_race finds.
elsewhere='--hosts|--data (FOLDER|mine.csv)|--pairs debian|--algorithm mine|--predict|out/|--communicator nccl|CUDA_ON_CPU=races'
# Printed to show how a run ends that cannot succeed.
fails='memory=2 ./book run 04 --cpu --micro-batch 512|run 01 --learning-rate 0.05|--learning-rate 1e6|memory=24 .* --stage 0'
tried=0
while read -r command; do
    chapter=$(grep -oE 'run [0-9]+' <<<"$command" | grep -oE '[0-9]+') || chapter=15
    (($# == 0)) || [[ " $* " == *" $chapter "* ]] || continue
    status=0
    [[ ! $command =~ $fails ]] || status=1
    quick=--quick
    [[ $command != *'run 00'* ]] || quick=  # it takes a number of ranks and nothing else
    expect "$status" "" bash -c "$command $quick"
    lacks "cannot be drawn"
    tried=$((tried + 1))
done < <(commands | grep -vE -e "$elsewhere")
((tried > ($# == 0 ? 60 : 0))) || complain "only $tried commands were found: has the form of the READMEs changed?"
echo "$tried commands were tried"
finish
