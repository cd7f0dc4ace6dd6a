#include "05_ranks/rank.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "common/gpu/check.hpp"

namespace ddp {

bool Job::has_several_hosts() const {
    return std::ranges::any_of(
        members, [this](const Member& member) { return member.host != members[0].host; });
}

std::string Job::name(int rank) const {
    const std::string name = "rank " + std::to_string(rank);
    if (!has_processes)
        return name;
    const Member& member = members[static_cast<std::size_t>(rank)];
    return name + " (process " + std::to_string(member.process) + " on " + member.host + ")";
}

Rank::Rank(int rank, std::uint64_t run_id, const Job& job, ControlChannel& control,
           RankEvents& events)
    : rank_(rank), run_id_(run_id), job_(job), control_(control), events_(events) {}

std::vector<std::string> Rank::exchange(const std::string& operation, std::string mine) {
    check();
    control_.send(rank_, {Message::Kind::call, run_id_, ++calls_, operation, {std::move(mine)}});
    return events_.wait_for_gathered(run_id_);
}

void Rank::barrier() {
    exchange("barrier", "");
}

std::vector<std::string> Rank::all_gather(const std::string& mine) {
    return exchange("all_gather", mine);
}

std::string Rank::broadcast(const std::string& message, int root) {
    if (root < 0 || root >= world_size())
        throw std::invalid_argument("broadcast from rank " + std::to_string(root) +
                                    ": the ranks are 0 to " + std::to_string(world_size() - 1));
    return exchange("broadcast from rank " + std::to_string(root),
                    rank_ == root ? message : "")[static_cast<std::size_t>(root)];
}

double Rank::mean_over_ranks(double mine) {
    const std::vector<double> all = all_gather(mine);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

double Rank::max_over_ranks(double mine) {
    return std::ranges::max(all_gather(mine));
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
    return device;
}

}  // namespace ddp
