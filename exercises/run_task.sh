# Sourced by ./book and by the tests of the exercises: runs one task of an exercise's program.
# shellcheck shell=bash

task_seconds=15    # that a task may take: a right one takes two, and a reader waits; a kernel may take:
kernel_seconds=10
# How it is run: orders of threads, and what a launch gets that leaves the number of threads to the device (on a CPU that is
# one thread otherwise).
orders=(forward "reversed,shape=3x5" "random:7,shape=2x37")

# run_task PROGRAM TASK: $verdict becomes passed, missing (nobody has begun it) or wrong, and $words
# what there is to say about it; $ended is the exit status that says why. On a CPU a task is run with the
# threads of a block in three orders: a kernel that lacks a barrier is right in some and wrong in others. Kernels that take any
# number of threads are run by one and by several blocks of several: where they meet, they must not disturb each other.
run_task() {
    local order
    for order in "${orders[@]}"; do
        run_in_order "$1" "$2" "$order"
        [[ $verdict == passed ]] || break
    done
    [[ $verdict == wrong ]] || return 0
    case $ended in
        4) if [[ $order != forward ]] || is_right_reversed "$1" "$2"; then
            words+=$'\n'"It is wrong only with several threads, or in some orders of them. Does each thread write elements"
            words+=" of its own? Is there a __syncthreads() missing?"
        fi ;;
        5) ;;  # the words say it
        124 | 137) words+=$'\n'"Stopped after $task_seconds s: a loop in your code does not end, or the machine is busy." ;;
        139) words+=$'\n'"Your code has crashed: it reads or writes where it may not (segmentation fault)."
            if [[ $words != cuda_on_cpu:* ]]; then  # which would have said where
                words+=" Is an index too large for its array, a __shared__ one perhaps? Or is a pointer or reference used"
                words+=" after what it refers to is gone?"
            fi ;;
        134) words+=$'\n'"Your code has crashed: something in it has called abort()." ;;
        136) words+=$'\n'"Your code has crashed: it divides an integer by zero." ;;
        *) if [[ $words == *"never freed"* ]]; then
            words=${words%$'\n'passed}$'\n'"All else is right. But memory that you allocate must be freed: a Buffer or a Tensor does it itself."
        else
            words+=$'\n'"Your code has ended the program (status $ended): it must return, or throw."
        fi ;;
    esac
    words=${words#$'\n'}
}
run_in_order() {  # PROGRAM TASK ORDER
    ended=0
    words=$(CUDA_ON_CPU=strict,timeout=$kernel_seconds,order=$3 \
        timeout -k 1 "$task_seconds" "$1" "$2" 2>&1 </dev/null) || ended=$?
    verdict=wrong
    if [[ $ended == 0 && ${words##*$'\n'} == passed ]]; then verdict=passed; fi
    if [[ $ended == 3 ]]; then verdict=missing; fi
}
is_right_reversed() {  # PROGRAM TASK
    local verdict ended words
    run_in_order "$1" "$2" reversed
    [[ $verdict == passed ]]
}
