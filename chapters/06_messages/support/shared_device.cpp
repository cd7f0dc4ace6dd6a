#include "06_messages/support/shared_device.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "common/report/units.hpp"

namespace ddp {
namespace {

std::string address_of_device() {
    int device = 0;
    char address[32] = "";
    DDP_CHECK(cudaGetDevice(&device));
    DDP_CHECK(cudaDeviceGetPCIBusId(address, sizeof address, device));
    return address;
}

// Returns whether a process listens at the socket `path`.
bool has_listener(const std::string& path) {
    sockaddr_un address{AF_UNIX, {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool is_heard =
        connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(socket);
    return is_heard;
}

}  // namespace

SharedDevice find_shared_device(Rank& rank) {
    SharedDevice device{address_of_device(), {}, true, 0, 0};
    const std::vector<std::string> addresses = rank.all_gather(device.address);
    std::set<pid_t> processes;
    std::map<std::string, int> ranks_on;
    for (int r = 0; r < rank.world_size(); r++) {
        const Member& member = rank.job().members[static_cast<std::size_t>(r)];
        const std::string& address = addresses[static_cast<std::size_t>(r)];
        if (member.node != rank.node())
            continue;
        device.max_ranks = std::max(device.max_ranks, ++ranks_on[address]);
        if (address != device.address)
            continue;
        device.ranks.push_back(r);
        processes.insert(member.process);
    }
    device.is_only_one = static_cast<int>(device.ranks.size()) == rank.local_world_size();
    device.processes = static_cast<int>(processes.size());
    return device;
}

std::string mps_folder() {
    const char* given = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
    return given != nullptr ? given : "/tmp/nvidia-mps";
}

bool has_mps(const std::string& folder) {
    return has_listener(folder + "/control");
}

double longest_wait_s(double wanted_s) {
    constexpr double longest_s = 1.5;
    int device = 0, ends_kernels = 0;
    DDP_CHECK(cudaGetDevice(&device));
    DDP_CHECK(cudaDeviceGetAttribute(&ends_kernels, cudaDevAttrKernelExecTimeout, device));
    const bool is_longer = wanted_s == 0 || wanted_s > longest_s;
    return ends_kernels != 0 && is_longer ? longest_s : wanted_s;
}

std::string how_many_may_start(std::size_t most) {
    if (most == 0)
        return "it is too small for any rank.";
    return "start at most " + format_count(static_cast<std::int64_t>(most), "rank") + " on it.";
}

std::string refusal(const SharedDevice& device, const DeviceLimits& limits,
                    bool processes_take_turns, bool has_link) {
    const auto ranks = static_cast<unsigned int>(device.ranks.size());
    if (processes_take_turns && device.processes > 1)
        return std::to_string(device.processes) + " processes cannot share the GPU " +
               device.address +
               " well, because their kernels take turns of milliseconds, and each message would "
               "cost one: use --ranks, which makes threads, start no more processes than there "
               "are GPUs, start NVIDIA's MPS, or try it with --slowly.";
    if (limits.multiprocessors / 2 < ranks)
        return std::to_string(ranks) + " ranks share a GPU of " +
               std::to_string(limits.multiprocessors) +
               " multiprocessors, where each needs two for kernels that wait for other ranks: " +
               how_many_may_start(limits.multiprocessors / 2);
    // A link's times are compared, and GPUs have clocks of their own; its ports are taken by
    // compare-and-swap, which between GPUs on PCIe is not atomic.
    if (has_link && !device.is_only_one)
        return "the simulated link works within one GPU: leave --link out, or let the program see "
               "one GPU only (CUDA_VISIBLE_DEVICES=0).";
    return "";
}

SharedDevice require_kernels_at_the_same_time(Rank& rank, bool has_link) {
    if (launches_wait() && rank.world_size() > 1)
        throw OptionError(
            "CUDA_LAUNCH_BLOCKING makes each launch wait for its kernel, which here may wait for "
            "the next launch of another rank: unset it, or start one rank only.");
    const SharedDevice device = find_shared_device(rank);
    const bool take_turns =
        !kernels_run_on_cpu && !has_mps(mps_folder()) && !rank.job().may_take_turns;
    if (const std::string text =
            refusal(device, device_limits(), take_turns, has_link && !kernels_run_on_cpu);
        !text.empty())
        throw OptionError(text);
    return device;
}

namespace {

int count_devices() {
    int devices = 0;
    DDP_CHECK(cudaGetDeviceCount(&devices));
    return devices;
}

}  // namespace

int ranks_on_a_device(const Rank& rank) {
    const int devices = count_devices();
    return (rank.local_world_size() + devices - 1) / devices;
}

void require_queues(const Rank& rank, std::size_t streams) {
    const auto ranks =
        static_cast<std::size_t>(rank.job().has_processes ? 1 : ranks_on_a_device(rank));
    const std::size_t queues = device_limits().queues;
    const std::size_t all = streams_alive / static_cast<std::size_t>(count_devices());
    const std::string share = " share a GPU of " + std::to_string(queues) +
                              " queues, where one stream would wait for another's kernel: ";
    if (ranks * (streams + 1) > queues)
        throw OptionError(std::to_string(ranks) + " ranks with " + std::to_string(streams + 1) +
                          " streams each" + share + how_many_may_start(queues / (streams + 1)));
    if (all > queues && rank.world_size() > 1)
        throw OptionError(std::to_string(ranks) + " ranks with " + std::to_string(all) +
                          " streams in all" + share + how_many_may_start(queues * ranks / all));
}

}  // namespace ddp
