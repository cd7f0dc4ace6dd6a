# Sourced by ./book and by the tests of the exercises: runs one task of an exercise's program.
# shellcheck shell=bash

task_seconds=15    # that a task may take: a right one takes two, and a reader waits; a kernel may take:
kernel_seconds=10
# How it is run: orders of threads, and what a launch gets that leaves the number of threads to the device (on a CPU that is
# one thread otherwise).
orders=(forward "reversed,shape=3x5" "random:7,shape=2x37")
in_sandbox=()  # what runs a task in a sandbox: words before the command
more_orders=("random:1,shape=3x33" "random:2,shape=2x37")  # of the threads of an answer's own kernels

# run_task PROGRAM TASK [SOURCE]: $verdict becomes passed, missing (nobody has begun it), wrong, or busy (it took too long, on a
# machine that has too much to do: nobody knows), and $words what there is to say about it; $ended is the exit status that
# says why. On a CPU a task is run with the threads of a block in several orders: a kernel that lacks a barrier is right in
# some and wrong in others. Kernels that take any number of threads are run by one and by several blocks of several: where
# they meet, they must not disturb each other. Times, which depend on no order, are measured in the first. An answer in CUDA,
# SOURCE.cu, is run in more orders: its races are looked for, and who does its work.
run_task() {
    local order measures=yes races='' task_seconds=$task_seconds orders=("${orders[@]}")
    if [[ ${3-} == *.py ]]; then orders=(forward) task_seconds=120; fi  # it has no kernels, and PyTorch is slow to start
    for order in "${orders[@]}"; do
        run_in_order "$1" "$2" "$order"
        [[ $verdict == passed ]] || break
        measures=no
    done
    if [[ $verdict == passed && ${3-} == *.cu ]]; then
        races=races,
        for order in "${more_orders[@]}"; do
            run_in_order "$1" "$2" "$order"
            [[ $verdict == passed ]] || break
        done
    fi
    [[ $verdict == wrong ]] || return 0
    explain "$1" "$2"
    if took_too_long && is_busy; then
        verdict=busy
        local what
        what="It took too long, and this machine is busy: other programs have at least $others threads for its $(nproc) cores."
        what+=" So this says nothing about your code: check again when the machine has less to do. What was seen:"
        words=$what$'\n'$words
    fi
}
explain() {  # PROGRAM TASK: adds to $words what the way in which the program has ended tells
    case $ended in
        4) if [[ $order != forward ]] || is_right_reversed "$1" "$2"; then
            words=" of its own, and is every element somebody's? Or is there a __syncthreads() missing?"$'\n'$words
            words="It is wrong only with several threads, or in some orders of them. Does each thread write elements"$words
        fi ;;
        5 | 6) ;;  # the words say it
        124 | 137) words+=$'\n'"Stopped after $task_seconds s: a loop has no end, or far too much work, or this machine is busy." ;;
        139) words+=$'\n'"Your code has crashed: it reads or writes where it may not (segmentation fault)."
            if [[ $words != cuda_on_cpu:* ]]; then  # which would have said where
                words+=" Is an index too large for its array, a __shared__ one perhaps? Or is a pointer or reference used"
                words+=" after what it refers to is gone?"
            fi ;;
        134) words+=$'\n'"Your code has crashed: something in it has called abort()." ;;
        136) words+=$'\n'"Your code has crashed: it divides an integer by zero." ;;
        *) if [[ $words == *"never freed"* ]]; then
            words=${words%$'\n'passed}$'\n'"All else is right. But memory that you allocate must be freed: a Buffer or a Tensor does it itself."
        elif [[ $words == *"never destroyed"* ]]; then
            words=${words%$'\n'passed}$'\n'"All else is right. But what CUDA has made for you must be destroyed, on every way out of your functions."
        else
            words+=$'\n'"Your code has ended the program (status $ended): it must return, or throw."
        fi ;;
    esac
    words=${words#$'\n'}
}
took_too_long() {
    [[ $words != *"both send, and neither receives"* ]] &&  # that is never the machine's fault
        [[ $ended == 124 || $ended == 137 || $words == *"machine is busy"* || $words == *"still running after"* ]]
}
is_busy() {  # whether other programs' threads want all cores now that ours has ended: $others, the least of some moments
    local running
    others=1000000
    for _ in 1 2 3 4 5; do
        read -r _ _ _ running _ </proc/loadavg || return 1
        running=$((${running%/*} - 1))  # without this shell
        others=$((running < others ? running : others))
        sleep 0.1
    done
    ((others >= $(nproc)))
}
run_in_order() {  # PROGRAM TASK ORDER
    ended=0
    words=$(CUDA_ON_CPU=strict,${races-}timeout=$kernel_seconds,order=$3 DDP_MEASURES=${measures:-yes} \
        ${in_sandbox[@]+"${in_sandbox[@]}"} timeout -k 1 "$task_seconds" "$1" "$2" 2>&1 </dev/null) || ended=$?
    verdict=wrong
    if [[ $ended == 0 && ${words##*$'\n'} == passed ]]; then verdict=passed; fi
    if [[ $ended == 3 ]]; then verdict=missing; fi
    if [[ $ended == 77 ]]; then verdict=busy; fi  # it cannot be run on this machine, and says why
}
is_right_reversed() {  # PROGRAM TASK
    local verdict ended words
    run_in_order "$1" "$2" reversed
    [[ $verdict == passed ]]
}
