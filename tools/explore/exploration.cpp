#include "tools/explore/exploration.hpp"

#include <array>

#include <cuda_on_cpu/settings.hpp>

#include "05_ranks/world.hpp"
#include "tools/explore/fifo_cases.hpp"

namespace ddp {
namespace {

using cuda_on_cpu::Exploration;
using cuda_on_cpu::ExplorationOptions;
using cuda_on_cpu::ExploredFailure;
using cuda_on_cpu::Race;

constexpr std::size_t max_streams = 2;

// All that rank 0 must know of each rank.
struct ExploredRank {
    std::array<cudaStream_t, max_streams> streams;
    std::span<std::byte> arena;  // begins with the rank's control block
    DeviceErrorReport* error_report;
    std::span<float> results, input, output;
};

// Returns what is wrong with the results of all ranks at the end of an execution.
std::string wrong_results(const ExploredCase& explored, const std::vector<ExploredRank>& ranks) {
    for (int round = 0; round < explored.rounds; round++) {
        std::vector<std::vector<float>> numbers(ranks.size());
        for (std::size_t r = 0; r < ranks.size(); r++)
            for (std::size_t i = 0; i < explored.count; i++)
                numbers[r].push_back(number_of(static_cast<int>(r), round, i));
        for (std::size_t r = 0; r < ranks.size(); r++) {
            const std::vector<float> expected = explored.expected(static_cast<int>(r), numbers);
            const auto result = ranks[r].results.subspan(
                static_cast<std::size_t>(round) * explored.count, explored.count);
            for (std::size_t i = 0; i < explored.count; i++)
                if (result[i] != expected[i])
                    return "rank " + std::to_string(r) + "'s result[" + std::to_string(i) +
                           "] is " + std::to_string(static_cast<int>(result[i])) + " and not " +
                           std::to_string(static_cast<int>(expected[i]));
        }
    }
    return "";
}

// ---- Naming a failure

bool is_in(const std::byte* address, std::span<const std::byte> bytes) {
    return address >= bytes.data() && address < bytes.data() + bytes.size();
}

// Returns "rank 1's output[64]".
std::string name_of(const std::byte* address, const std::vector<ExploredRank>& ranks) {
    for (std::size_t r = 0; r < ranks.size(); r++) {
        const ExploredRank& rank = ranks[r];
        const std::string owner = "rank " + std::to_string(r) + "'s ";
        for (const auto& [name, array] : {std::pair("input", rank.input), {"output", rank.output}})
            if (const auto bytes = std::as_bytes(array); is_in(address, bytes))
                return owner + name + "[" +
                       std::to_string(static_cast<std::size_t>(address - bytes.data()) /
                                      sizeof(float)) +
                       "]";
        if (is_in(address, rank.arena.first(sizeof(ControlBlock))))
            return owner + "control block";
        if (is_in(address, rank.arena))
            return owner + "arena";
    }
    return "the error report";
}

// Returns "1 in block 1 writes". A rank's streams follow each other.
std::string text_of(const Race::Access& access, const ExploredCase& explored) {
    const int stream = access.stream % explored.streams;
    return std::to_string(access.stream / explored.streams) +
           (stream > 0 ? " on stream " + std::to_string(stream) : "") +
           (access.block > 0 ? " in block " + std::to_string(access.block) : "") +
           (access.is_write ? " writes" : " reads");
}

std::string text_of_failure(const Exploration& exploration, const ExploredCase& explored,
                            const std::vector<ExploredRank>& ranks) {
    switch (exploration.failure) {
        case ExploredFailure::none:
            return "";
        case ExploredFailure::deadlock:
            return "deadlock: ranks wait for what no rank will write";
        case ExploredFailure::wrong_result:
            return "wrong: " + exploration.what_is_wrong;
        case ExploredFailure::endless:
            return "endless: an order that does not end";
        case ExploredFailure::race:
            break;
    }
    const Race& race = exploration.race;
    return "race at " + name_of(race.address, ranks) + ": " + text_of(race.first, explored) + ", " +
           text_of(race.last, explored);
}

// ---- Exploring

// Returns whether an address belongs to the record of a rank's last operation, which is for
// messages.
bool is_record(const std::byte* address, const std::vector<ExploredRank>& ranks) {
    return std::ranges::any_of(ranks, [&](const ExploredRank& rank) {
        const auto* control = reinterpret_cast<const ControlBlock*>(rank.arena.data());
        return address >= reinterpret_cast<const std::byte*>(&control->current) &&
               address < reinterpret_cast<const std::byte*>(&control->gave_up);
    });
}

ExploredResult explore_ranks(const ExploredCase& explored, const std::vector<ExploredRank>& ranks,
                             std::optional<std::memory_order> without, double max_seconds) {
    ExplorationOptions options;
    std::vector<cudaStream_t> streams;
    for (const ExploredRank& rank : ranks) {
        streams.insert(streams.end(), rank.streams.begin(),
                       rank.streams.begin() + explored.streams);
        options.memory.push_back(rank.arena);
        options.memory.push_back(std::as_writable_bytes(std::span(rank.error_report, 1)));
    }
    options.what_is_wrong = [&] { return wrong_results(explored, ranks); };
    options.is_indifferent = [&](const std::byte* address) { return is_record(address, ranks); };
    options.max_seconds = max_seconds;
    options.without = without;
    const Exploration exploration = cuda_on_cpu::explore(streams, options);
    return {exploration, text_of_failure(exploration, explored, ranks)};
}

// Lets kernels that may have any number of blocks have so many, of one thread each.
class WithBlocks {
  public:
    explicit WithBlocks(int blocks) {
        cuda_on_cpu::Settings with = before_;
        with.shape = {static_cast<unsigned int>(blocks), 1};
        cuda_on_cpu::set_settings(with);
    }
    ~WithBlocks() { cuda_on_cpu::set_settings(before_); }
    WithBlocks(const WithBlocks&) = delete;
    WithBlocks& operator=(const WithBlocks&) = delete;

  private:
    const cuda_on_cpu::Settings before_ = cuda_on_cpu::settings();
};

}  // namespace

ExploredResult explore_case(const ExploredCase& explored, std::optional<std::memory_order> without,
                            double max_seconds) {
    CommonOptions options;
    options.ranks = explored.ranks;
    options.timeout_s = 0;  // the other ranks wait for rank 0, which explores
    World world(options);
    ExploredResult result;
    const auto work = [&](Rank& rank) {
        Peers peers(rank, (64 << 10) + (explored.has_fifos ? sizeof(Fifo) : 0));
        CaseArrays arrays(peers, explored);
        std::array<Stream, max_streams> streams;
        launch_rounds(peers, explored, arrays,
                      std::span(streams).first(static_cast<std::size_t>(explored.streams)));
        // Leaves to the explorer alone what a kernel reports in an execution: a watchdog that finds
        // it there would end the run, and the other ranks would take their memory with them.
        rank.remove(peers);
        const std::vector<ExploredRank> ranks =
            rank.all_gather(ExploredRank{{streams[0], streams[1]},
                                         {peers.arena()->data(), peers.arena()->bytes()},
                                         peers.view().error_report,
                                         {arrays.results.data(), arrays.results.size()},
                                         {arrays.input.data(), arrays.input.size()},
                                         {arrays.output.data(), arrays.output.size()}});
        if (rank.rank() == 0)
            result = explore_ranks(explored, ranks, without, max_seconds);
        rank.barrier();
    };
    const WithBlocks shape(explored.blocks);
    world.run(work);
    return result;
}

}  // namespace ddp
