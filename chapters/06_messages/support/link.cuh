#pragma once
// The simulated link (--link) in kernels: when a transfer has arrived, and waiting for that.
#include <cstdint>
#include <cuda/atomic>

#include "06_messages/wait.cuh"

namespace ddp {

// Waits until the device's clock shows `time_ns`, when the simulated link has delivered. Sleeps
// meanwhile, so that other ranks can have the core. Returns false if the run fails, or at once if
// the time is farther away than the limit of every wait.
__device__ inline bool sleep_until(const PeersView& view, std::uint64_t time_ns) {
    const std::uint64_t begin_ns = device_clock_ns();
    if (view.timeout_ns > 0 && time_ns > begin_ns && time_ns - begin_ns > view.timeout_ns) {
        OperationRecord& mine = view.own().current;
        report_problem(view, Problem::slow_link, mine, view.own().rank, mine,
                       PeerProgress::under_way);
        return false;
    }
    for (std::uint64_t now = device_clock_ns(); now < time_ns; now = device_clock_ns()) {
        if (load_acquire(view.error_report->stop) != 0) {
            store_release(view.own().gave_up, std::uint64_t{1});
            return false;
        }
        // A GPU may sleep twice as long as it is told (PTX ISA): half of what is left, and no end.
        const std::uint64_t left = time_ns - now, most = kernels_run_on_cpu ? left : left / 2;
        if (kernels_run_on_cpu || left > 2000)
            __nanosleep(most < 1'000'000 ? static_cast<unsigned int>(most) : 1'000'000u);
    }
    return true;
}

// Returns the time at which `bytes` arrive at rank `to` over the simulated link, if rank `from`
// could send them at `ready_ns`. As soon as the sender's out-port and the receiver's in-port are
// both free they are occupied for bytes / bandwidth, and the last byte arrives a latency later.
// These times are virtual: a rank that the operating system wakes too late does not delay transfers
// that come after it.
__device__ inline std::uint64_t arrival_over_link(const PeersView& view, int from, int to,
                                                  std::size_t bytes, std::uint64_t ready_ns) {
    using Time = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
    Time out_port(view.control[from]->out_port_ns), in_port(view.control[to]->in_port_ns);
    const auto occupied_ns =
        static_cast<std::uint64_t>(static_cast<double>(bytes) / view.link.bytes_per_ns);
    for (;;) {
        std::uint64_t out_ns = out_port.load(), in_ns = in_port.load();
        std::uint64_t begin_ns = ready_ns > out_ns ? ready_ns : out_ns;
        begin_ns = begin_ns > in_ns ? begin_ns : in_ns;
        const std::uint64_t end_ns = begin_ns + occupied_ns;
        // Another transfer may take either port first; then this one queues after it.
        if (out_port.compare_exchange_strong(out_ns, end_ns) &&
            in_port.compare_exchange_strong(in_ns, end_ns))
            return end_ns + view.link.latency_ns;
    }
}

}  // namespace ddp
