// A rank's calls for all ranks. Each is one message to the coordinator, and one back:
//
//     rank 0  ── "all_gather", a ──┐                        ┌──▶ a, b, c
//     rank 1  ── "all_gather", b ──┼──▶ coordinator waits ──┼──▶ a, b, c
//     rank 2  ── "all_gather", c ──┘    for all three       └──▶ a, b, c
//
// A barrier has no values, a broadcast keeps only the root's value, and a mean adds up all values:
// each rank by itself, in the order of the ranks, so that all get the same bits.
#include "05_ranks/rank.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "common/gpu/check.hpp"

namespace ddp {

Rank::Rank(int rank, std::uint64_t run_id, const Job& job, ControlChannel& coordinator,
           RankEvents& events)
    : rank_(rank), run_id_(run_id), job_(job), coordinator_(coordinator), events_(events) {}

// Sends this rank's value, and returns the values of all ranks, in the order of their numbers. The
// coordinator answers when it has all values, and notices if the ranks make different calls.
std::vector<std::string> Rank::exchange(const std::string& operation, std::string mine) {
    coordinator_.send(rank_,
                      {Message::Kind::call, run_id_, ++calls_, operation, {std::move(mine)}});
    return events_.wait_for_gathered(run_id_);
}

void Rank::barrier() {
    exchange("barrier", "");
}

std::vector<std::string> Rank::all_gather(const std::string& mine) {
    return exchange("all_gather", mine);
}

std::string Rank::broadcast(const std::string& value, int root) {
    if (root < 0 || root >= world_size())
        throw std::invalid_argument("broadcast from rank " + std::to_string(root) +
                                    ": the ranks are 0 to " + std::to_string(world_size() - 1));
    return exchange("broadcast from rank " + std::to_string(root),
                    rank_ == root ? value : "")[static_cast<std::size_t>(root)];
}

// Every rank adds in the same order, so all of them get the same bits.
double Rank::mean_over_ranks(double mine) {
    const std::vector<double> all = all_gather(mine);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

double Rank::max_over_ranks(double mine) {
    return std::ranges::max(all_gather(mine));
}

void Rank::run_part(const std::function<void()>& part) {
    const std::size_t before = kept_.size();
    part();
    barrier();
    while (kept_.size() > before)
        kept_.pop_back();
}

void Rank::check() const {
    if (const std::string cause = events_.failure(run_id_); !cause.empty())
        throw RunFailed(cause, true);
}

int Rank::select_device() const {
    int devices = 0;
    DDP_CHECK(cudaGetDeviceCount(&devices));
    const int device = local_rank() % devices;
    DDP_CHECK(cudaSetDevice(device));
    // A host thread that waits for its stream polls, which takes a core. Ranks that are threads of
    // one process sleep instead, so that the others can launch their kernels.
    if (!job().has_processes && world_size() > 1)
        DDP_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    return device;
}

}  // namespace ddp
