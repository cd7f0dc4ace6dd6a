#include "tools/explore/exploration.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <cuda_on_cpu/settings.hpp>

#include "05_ranks/world.hpp"
#include "tools/explore/fifo_cases.hpp"
#include "tools/explore/timeline.hpp"

namespace ddp {
namespace {

using cuda_on_cpu::ChangedAccess;
using cuda_on_cpu::Exploration;
using cuda_on_cpu::ExplorationOptions;

constexpr std::size_t max_streams = 2;

// All that rank 0 must know of each rank.
struct ExploredRank {
    std::array<cudaStream_t, max_streams> streams;
    std::byte* arena;
    std::size_t arena_bytes;
    DeviceErrorReport* error_report;
    float *numbers, *results, *input, *output;
    Fifo* fifo;
};

NamedArena arena_of(const ExploredCase& explored, int rank, const ExploredRank& of) {
    const std::size_t bytes = explored.count * sizeof(float);
    const std::size_t all = bytes * static_cast<std::size_t>(explored.rounds);
    const std::size_t of_streams = bytes * static_cast<std::size_t>(explored.streams);
    const auto array = [](const std::string& name, float* data, std::size_t size) {
        return NamedArray{name, std::as_bytes(std::span(data, size / sizeof(float)))};
    };
    NamedArena arena{rank, {of.arena, of.arena_bytes}, {}};
    arena.arrays = {array("numbers", of.numbers, all), array("result", of.results, all),
                    array("input", of.input, of_streams), array("output", of.output, of_streams)};
    if (of.fifo != nullptr) {
        arena.fifo = of.fifo;
        arena.arrays.push_back({"slot", std::as_bytes(std::span(of.fifo->slots)), slot_bytes});
    }
    const auto arrays_end = arena.bytes.begin() + sizeof(ControlBlock);
    arena.arrays.push_back(
        {"staging area", std::span<const std::byte>(arrays_end, arena.bytes.end())});
    return arena;
}

// Returns what is wrong with the results of all ranks at the end of an execution.
std::string wrong_results(const ExploredCase& explored, const std::vector<ExploredRank>& ranks) {
    for (int round = 0; round < explored.rounds; round++) {
        std::vector<std::vector<float>> numbers(ranks.size());
        for (std::size_t r = 0; r < ranks.size(); r++)
            for (std::size_t i = 0; i < explored.count; i++)
                numbers[r].push_back(number_of(static_cast<int>(r), round, i));
        for (std::size_t r = 0; r < ranks.size(); r++) {
            const std::vector<float> expected = explored.expected(static_cast<int>(r), numbers);
            const float* result =
                ranks[r].results + static_cast<std::size_t>(round) * explored.count;
            for (std::size_t i = 0; i < explored.count; i++)
                if (result[i] != expected[i])
                    return "rank " + std::to_string(r) + "'s result[" + std::to_string(i) +
                           "] is " + std::to_string(static_cast<int>(result[i])) + " and not " +
                           std::to_string(static_cast<int>(expected[i]));
        }
    }
    return "";
}

ChangedAccess with_mistake(const Mistake& mistake, bool is_store, std::memory_order order) {
    const bool is_of_store =
        mistake.part == Mistake::Part::release || mistake.part == Mistake::Part::store;
    if (is_store != is_of_store)
        return {order};
    return {std::memory_order_relaxed,
            mistake.part == Mistake::Part::wait || mistake.part == Mistake::Part::store};
}

// All explorations look up the same places.
CodePlaces code;

ExploredResult explore_ranks(const ExploredCase& explored, const std::vector<ExploredRank>& ranks,
                             const std::optional<Mistake>& mistake, double max_seconds,
                             std::set<FlagPlace>* flag_places) {
    ExploredResult result;
    Places places(explored.streams);
    ExplorationOptions options;
    std::vector<cudaStream_t> streams;
    for (std::size_t r = 0; r < ranks.size(); r++) {
        for (int s = 0; s < explored.streams; s++)
            streams.push_back(ranks[r].streams[static_cast<std::size_t>(s)]);
        places.add(arena_of(explored, static_cast<int>(r), ranks[r]));
        options.memory.emplace_back(ranks[r].arena, ranks[r].arena_bytes);
        options.memory.push_back(std::as_writable_bytes(std::span(ranks[r].error_report, 1)));
    }
    options.what_is_wrong = [&] { return wrong_results(explored, ranks); };
    options.is_indifferent = [&](const std::byte* address) { return places.is_record(address); };
    options.max_seconds = max_seconds;
    if (mistake)
        options.change = [&](const cuda_on_cpu::AtomicAccess& access) {
            if (places.flag_at(access.address) != mistake->flag ||
                (mistake->block >= 0 && access.block != mistake->block) ||
                !(mistake->lines.empty() || code.at(access.calls).lines == mistake->lines))
                return ChangedAccess{access.order};
            result.has_flag = true;
            return with_mistake(*mistake, access.is_store, access.order);
        };
    if (flag_places != nullptr)
        options.change = [&](const cuda_on_cpu::AtomicAccess& access) {
            if (const auto flag = places.flag_at(access.address))
                flag_places->insert({code.at(access.calls), *flag, access.is_store});
            return ChangedAccess{access.order};
        };
    result.exploration = cuda_on_cpu::explore(streams, options);
    result.failure = text_of_failure(result.exploration, places);
    result.timeline = timeline_of(result.exploration, places, static_cast<int>(ranks.size()));
    return result;
}

}  // namespace

std::string name_of(const Mistake& mistake) {
    constexpr const char* parts[] = {"release", "acquire", "wait", "store"};
    const std::string part = parts[static_cast<int>(mistake.part)];
    return (mistake.part == Mistake::Part::wait ? part + " for" : part + " of") + " the " +
           name_of(mistake.flag);
}

std::vector<Mistake> all_mistakes() {
    std::vector<Mistake> all;
    for (const FlagKind flag : {FlagKind::call, FlagKind::post, FlagKind::acknowledgement})
        for (const auto part :
             {Mistake::Part::release, Mistake::Part::acquire, Mistake::Part::wait})
            all.push_back({part, flag});
    return all;
}

namespace {

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

ExploredResult explore_world(const ExploredCase& explored, const std::optional<Mistake>& mistake,
                             double max_seconds, std::set<FlagPlace>* flag_places) {
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
        const std::vector<ExploredRank> ranks = rank.all_gather(
            ExploredRank{{streams[0], streams[1]},
                         peers.arena()->data(),
                         peers.arena()->bytes(),
                         peers.view().error_report,
                         arrays.numbers.data(),
                         arrays.results.data(),
                         arrays.input.data(),
                         arrays.output.data(),
                         explored.has_fifos ? peers.extension<CaseFifo>().fifo.data() : nullptr});
        if (rank.rank() == 0)
            result = explore_ranks(explored, ranks, mistake, max_seconds, flag_places);
        rank.barrier();
    };
    const WithBlocks shape(explored.blocks);
    world.run(work);
    return result;
}

}  // namespace

ExploredResult explore_case(const ExploredCase& explored, const std::optional<Mistake>& mistake,
                            double max_seconds) {
    return explore_world(explored, mistake, max_seconds, nullptr);
}

std::set<FlagPlace> flag_places_of(const ExploredCase& explored) {
    // Generous: each place is looked up by a program, which takes long on a busy machine.
    constexpr double max_seconds = 600;
    std::set<FlagPlace> places;
    if (!explore_world(explored, std::nullopt, max_seconds, &places).exploration.is_complete)
        throw std::runtime_error(explored.algorithm + ": not all of its flags were seen");
    return places;
}

std::vector<Mistake> mistakes_at(const FlagPlace& place) {
    const auto parts = place.is_store ? std::array{Mistake::Part::store, Mistake::Part::release}
                                      : std::array{Mistake::Part::wait, Mistake::Part::acquire};
    return {{parts[0], place.flag, place.place.lines}, {parts[1], place.flag, place.place.lines}};
}

}  // namespace ddp
