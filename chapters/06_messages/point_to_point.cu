// A ping-pong, and the time of one message:
//
//     rank 0   send ──▶           receive     send ──▶           receive
//     rank 1          receive ──▶ send               receive ──▶ send
//              ├─── mark to mark ────────┤    seconds of a message: half of it
//
// Short messages all take nearly the same time: that is alpha. For long ones alpha hardly counts:
// (seconds - alpha) / bytes is beta.
#include "06_messages/point_to_point.hpp"

#include <algorithm>
#include <atomic>
#include <cuda/atomic>
#include <stdexcept>

#include "common/gpu/clock.hpp"
#include "common/gpu/launch.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

__global__ void wait_for_gate(unsigned int* is_open) {
    constexpr std::uint64_t longest_ns = 1'000'000'000;
    const std::uint64_t begin_ns = device_clock_ns();
    const cuda::atomic_ref<unsigned int, cuda::thread_scope_system> flag(*is_open);
    while (flag.load(cuda::memory_order_acquire) == 0 && device_clock_ns() - begin_ns < longest_ns)
        __nanosleep(200);
}

}  // namespace

// Freeing pinned memory may wait for kernels of other ranks: later.
Gate::Gate(Rank& rank) : is_open_(std::make_shared<PinnedBuffer<unsigned int>>(1)) {
    rank.keep_until_run_ends(is_open_);
}

void Gate::close(Stream& stream) {
    std::atomic_ref((*is_open_)[0]).store(0, std::memory_order_release);
    launch(stream, {1, 1}, wait_for_gate, is_open_->data());
}

void Gate::open() {
    std::atomic_ref((*is_open_)[0]).store(1, std::memory_order_release);
}

MessageTime ping_pong(Peers& peers, std::size_t bytes, int rounds) {
    // So many that no host waits within a batch; the first of each only lets the ranks meet.
    constexpr std::size_t rounds_of_batch = Peers::most_ahead / 4;
    const int rank = peers.rank().rank();
    if (rank > 1)
        return {bytes, 0};
    Stream stream;
    ArenaBuffer<unsigned char> data = peers.allocate<unsigned char>(bytes);
    std::vector<Event> marks(rounds_of_batch + 1);
    Gate gate(peers.rank());
    std::vector<double> halves;
    while (halves.size() < static_cast<std::size_t>(rounds)) {
        // A GPU passes a message on sooner than the host enqueues the next one. So the stream
        // begins when the whole batch is enqueued, and events on it tell the time.
        gate.close(stream);
        for (Event& mark : marks) {
            mark.record(stream);
            if (&mark == &marks.back())
                break;
            for (int turn : {0, 1}) {
                if (turn == rank)
                    peers.send(data.data(), bytes, 1 - rank, stream, "ping-pong");
                else
                    peers.receive(data.data(), bytes, 1 - rank, stream, "ping-pong");
            }
        }
        gate.open();
        peers.synchronize(stream);
        for (std::size_t i = 1; i < rounds_of_batch; i++)
            halves.push_back(marks[i + 1].seconds_since(marks[i]) / 2);
    }
    return {bytes, median(halves)};
}

CostModel fit_cost(std::span<const MessageTime> times) {
    const std::size_t third = times.size() / 3;
    if (third == 0)
        throw std::invalid_argument("alpha and beta need three points: measure more sizes");
    // alpha: the shortest third.
    std::vector<double> alphas, betas;
    for (const MessageTime& time : times.first(third))
        alphas.push_back(time.seconds);
    const double alpha = median(alphas);
    // beta: the longest third.
    for (const MessageTime& time : times.last(third))
        betas.push_back((time.seconds - alpha) / static_cast<double>(time.bytes));
    return {alpha, std::max(0.0, median(betas))};
}

}  // namespace ddp
