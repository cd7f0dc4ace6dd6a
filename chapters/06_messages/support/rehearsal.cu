// All that follows rests on one thing: a kernel of one rank waits, and the kernel of another rank
// that it waits for does begin. NVIDIA promises that for the blocks of one cooperative kernel, and
// not for two kernels. So it is tried:
//
//     kernel of rank 0   raise my flag in every arena │ wait until all flags in mine are raised
//     kernel of rank 1   raise my flag in every arena │ wait until all flags in mine are raised
//
// Where one begins only when the other has ended, the first one waits in vain.
#include "06_messages/support/shared_device.hpp"

#include <stdexcept>
#include <string>

#include "05_ranks/rank.hpp"
#include "06_messages/wait.cuh"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// One thread. `have_met` is pinned memory of the rank's process.
__global__ void meet(PeersView view, std::uint64_t limit_ns, unsigned int* have_met) {
    for (int r = 0; r < view.world_size; r++)
        store_release(view.control[r]->is_here[view.rank], std::uint64_t{1});
    int next = 0;  // the first rank that was not seen yet
    const auto all_are_here = [&] {
        while (next < view.world_size && load_relaxed(view.own().is_here[next]) != 0)
            next++;
        return next == view.world_size;
    };
    if (wait_or_report(view, limit_ns, all_are_here, [](Problem) {}))
        *have_met = 1;
}

}  // namespace

void rehearse(Rank& rank, const PeersView& view) {
    if (rank.world_size() == 1)
        return;
    // A GPU begins a kernel within microseconds. On a CPU a rank may have to wait long for a core,
    // and nothing keeps kernels apart: there the job's time-out holds.
    const std::uint64_t limit_ns = kernels_run_on_cpu ? view.timeout_ns : 1'000'000'000;
    Stream stream;
    rank.barrier();  // no document says that a stream can be made beside a kernel that waits
    launch_cooperative(stream, {1, 1}, meet, view, limit_ns, &view.error_report->have_met);
    stream.synchronize();
    for (const unsigned int have_met : rank.all_gather(view.error_report->have_met))
        if (have_met == 0)
            throw std::runtime_error(
                "the kernels of these ranks do not run at the same time, although each waits for "
                "the others: a debugger, a profiler, compute-sanitizer or another program on the "
                "same GPU may keep them apart, so run without it, or with --ranks 1; or two "
                "cooperative kernels may exclude each other there: try DDP_PLAIN_LAUNCHES=1 (on a "
                "CPU, a machine that is very busy: give a longer --timeout)");
}

}  // namespace ddp
