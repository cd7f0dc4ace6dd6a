#!/usr/bin/env bash
# What a reader sees in gdb, with a program of the preset cpu-debug and two ranks as threads: each thread's rank, lines and arguments,
# in a function of a rank and in a kernel: debugger.sh [PROGRAM], the main job if it is built so already
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
command -v gdb >/dev/null || { echo "SKIPPED: what gdb shows: no gdb is here" && exit 77; }
cd "$root" || exit 1
program=${1:-}
if [[ -z $program ]]; then
    if ! { cmake --preset cpu-debug -B "$scratch/build" -DBUILD_TESTING=OFF && cmake --build "$scratch/build" --target overlap; } >"$scratch/log" 2>&1; then
        tail -n 20 "$scratch/log" && exit 1
    fi
    program=$scratch/build/bin/overlap
fi

cat >"$scratch/commands" <<'END_OF_COMMANDS'
set pagination off
set confirm off
set width 0
set print thread-events off
break ddp::DistributedDataParallel::launch
run
backtrace 4
info threads
delete
break reduce_scatter_kernel
continue
print collective.view.rank
print threadIdx.x
kill
END_OF_COMMANDS
timeout 300 gdb -nx -q -batch -x "$scratch/commands" --args "$program" --ranks 2 --quick --timeout 300 --csv "$scratch/overlap.csv" \
    >"$scratch/said" 2>&1 </dev/null
if grep -q "ptrace: Operation not permitted" "$scratch/said"; then
    echo "SKIPPED: what gdb shows: no program may be traced here" && exit 77
fi
shows() { grep -qE "$2" "$scratch/said" || complain "gdb does not show $1"; }
line_of() { grep -nF -m1 -- "$2" "chapters/$1" | cut -d: -f1; }  # FILE TEXT

launch=$(line_of 15_overlap/ddp.cpp 'void DistributedDataParallel::launch(std::size_t i) {')
shows "which rank launches a bucket, and which bucket" "^Thread [0-9]+ \"rank [01]\" hit Breakpoint 1, ddp::DistributedDataParallel::launch \(.*, i=0\) at "
grep -oE "hit Breakpoint 1, .* at .*/15_overlap/ddp\.cpp:[0-9]+" "$scratch/said" | grep -oE "[0-9]+$" | {
    read -r line && ((line >= launch && line <= launch + 2))
} || complain "gdb does not show the line of launch, $launch of ddp.cpp"
shows "who has called it, with arguments" "^#[12] .*launch_ready_buckets \(.*\) at .*/15_overlap/ddp\.cpp:[0-9]+"
shows "the gradient that was ready" "^#[23] .*mark_ready \(.*gradient=.*\) at .*/15_overlap/ddp\.cpp:[0-9]+"
for name in "rank 0" "rank 1" "rank 0 stream" "rank 1 stream" watchdog; do
    shows "a thread \"$name\"" "^[ *] +[0-9]+ +Thread .* \"$name\" "
done
shows "the kernel's arguments and line" "^Thread [0-9]+ \"rank [01] stream\" hit Breakpoint 2.*reduce_scatter_kernel<float> \(.*op=ddp::ReduceOp::average, .*count=[0-9]+, .*\) at .*/09_all_reduce/two_shot\.cu:[0-9]+"
rank=$(sed -n 's/^Thread [0-9]* "rank \([01]\) stream" hit Breakpoint 2.*/\1/p' "$scratch/said")
shows "in the stream's name the rank that the kernel was given" "^\\\$1 = $rank\$"
shows "the thread of the block" "^\\\$2 = 0\$"
((failures == 0)) || cat "$scratch/said"
finish
