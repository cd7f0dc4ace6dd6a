// The explorer finds exactly the outcomes that a simple model finds, finds what is wrong with a
// message, and takes few executions for that.
#include "tools/explore/engine/explore.hpp"

#include <deque>
#include <random>
#include <set>
#include <span>

#include "tests/common/explorer/model.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using cuda_on_cpu::Exploration;
using cuda_on_cpu::ExplorationOptions;
using cuda_on_cpu::ExploredFailure;
using std::memory_order_acquire, std::memory_order_relaxed, std::memory_order_release,
    std::memory_order_seq_cst;

class Explored {
  public:
    Explored() : memory_(1) {
        const std::vector<SmallMemory> zero(1);
        memory_.copy_from(zero);
        options_.memory.push_back(std::as_writable_bytes(std::span(memory_.data(), 1)));
    }

    SmallMemory* memory() { return memory_.data(); }
    Stream& add_stream() { return streams_.emplace_back(); }
    ExplorationOptions& options() { return options_; }

    Exploration run() {
        std::vector<cudaStream_t> handles;
        for (Stream& stream : streams_)
            handles.push_back(stream);
        return cuda_on_cpu::explore(handles, options_);
    }

  private:
    Buffer<SmallMemory> memory_;
    std::deque<Stream> streams_;
    ExplorationOptions options_;
};

struct ExploredOutcomes {
    std::set<Outcome> outcomes;
    Exploration exploration;
};

void launch_as_streams(Explored& explored, const std::vector<SmallProgram>& programs) {
    for (std::size_t p = 0; p < programs.size(); p++)
        launch_program(explored.add_stream(), explored.memory(), static_cast<int>(p), programs[p]);
}
void launch_as_blocks(Explored& explored, const std::vector<SmallProgram>& programs) {
    SmallPrograms blocks;
    std::ranges::copy(programs, blocks.begin());
    launch_blocks(explored.add_stream(), explored.memory(), static_cast<int>(programs.size()),
                  blocks);
}

ExploredOutcomes outcomes_of(const std::vector<SmallProgram>& programs,
                             const FirstValues& first = {},
                             decltype(launch_as_streams)* launch_as = launch_as_streams) {
    Explored explored;
    ExploredOutcomes result;
    for (std::size_t place = 0; place < first.size(); place++)
        explored.memory()->places[place][0] = first[place];
    launch_as(explored, programs);
    explored.options().what_is_wrong = [&] {
        Outcome outcome;
        for (std::size_t p = 0; p < programs.size(); p++)
            for (const unsigned int seen : explored.memory()->seen[p])
                outcome.push_back(seen);
        result.outcomes.insert(outcome);
        return std::string();
    };
    result.exploration = explored.run();
    return result;
}

SmallProgram program(std::initializer_list<Instruction> code) {
    SmallProgram result;
    for (const Instruction& instruction : code)
        result.code[static_cast<std::size_t>(result.size++)] = instruction;
    return result;
}

// Returns a program of which most instructions load or store.
SmallProgram random_program(std::mt19937& random) {
    using enum Instruction::Kind;
    const auto pick = [&](const auto& choices) { return choices[random() % std::size(choices)]; };
    constexpr Instruction::Kind kinds[] = {load,         load,     load,  load,  store,
                                           store,        store,    store, store, wait,
                                           wait_exactly, wait_any, add,   fence};
    constexpr std::memory_order stores[] = {memory_order_relaxed, memory_order_release};
    constexpr std::memory_order fences[] = {memory_order_release, memory_order_seq_cst};
    SmallProgram result;
    result.size = 1 + static_cast<int>(random() % max_instructions);
    for (int i = 0; i < result.size; i++) {
        Instruction& now = result.code[static_cast<std::size_t>(i)];
        now.kind = pick(kinds);
        now.place = static_cast<int>(random() % max_places);
        now.value = 1 + random() % 3;
        now.order = now.kind == store   ? pick(stores)
                    : now.kind == fence ? pick(fences)
                                        : memory_order_relaxed;
    }
    return result;
}

}  // namespace

TEST_CASE("the explorer finds the outcomes that a simple model finds") {
    std::mt19937 random(20260);
    std::size_t outcomes = 0, deadlocks = 0;
    for (int i = 0; i < 800; i++) {
        std::vector<SmallProgram> programs(2 + random() % 2);
        for (SmallProgram& each : programs)
            each = random_program(random);
        // Half of them begin with flags that are up, and some are blocks of one kernel.
        const FirstValues first =
            i % 2 == 0 ? FirstValues{} : FirstValues{static_cast<unsigned int>(i) % 3, 1};
        const ExploredOutcomes found =
            outcomes_of(programs, first, i % 8 < 2 ? launch_as_blocks : launch_as_streams);
        const PossibleOutcomes possible = outcomes_by_model(programs, first);
        CAPTURE(i);
        REQUIRE(found.exploration.is_complete);
        REQUIRE((found.exploration.failure == ExploredFailure::deadlock) == possible.has_deadlock);
        if (!possible.has_deadlock) {
            REQUIRE(found.exploration.failure == ExploredFailure::none);
            REQUIRE(found.outcomes == possible.outcomes);
        }
        outcomes += found.outcomes.size();
        deadlocks += possible.has_deadlock;
    }
    REQUIRE(outcomes > 1000);
    REQUIRE(deadlocks > 50);
}

TEST_CASE("a kernel begins when all blocks of the one before have ended") {
    using enum Instruction::Kind;
    const auto explore_blocks = [](int streams) {
        Explored explored;
        const SmallPrograms writes{program({{write, 0}}), program({{write, 1}})},
            reads{program({{read, 1}}), program({{read, 0}})};
        Stream& first = explored.add_stream();
        launch_blocks(first, explored.memory(), 2, writes);
        launch_blocks(streams == 1 ? first : explored.add_stream(), explored.memory(), 2, reads);
        return explored.run();
    };
    REQUIRE(explore_blocks(1).failure == ExploredFailure::none);
    const Exploration apart = explore_blocks(2);
    REQUIRE(apart.failure == ExploredFailure::race);
    REQUIRE(apart.race.first.stream != apart.race.last.stream);
    REQUIRE(apart.race.first.block != apart.race.last.block);
}

TEST_CASE("what does not depend on each other is one execution") {
    // Three streams, each with places of its own: a store is a step only where others look.
    const SmallProgram writer = program({{Instruction::store, 0, 1, memory_order_release}});
    const SmallProgram other = program({{Instruction::store, 1, 1, memory_order_release}});
    REQUIRE(outcomes_of({writer, other}).exploration.executions == 1);
    // A reader comes before or after the store.
    const SmallProgram reader = program({{Instruction::load, 0, 0, memory_order_acquire}});
    REQUIRE(outcomes_of({writer, reader}).exploration.executions == 2);
    REQUIRE(outcomes_of({writer, reader, other}).exploration.executions == 2);
    REQUIRE(outcomes_of({writer, reader, reader}).exploration.executions == 4);
}

TEST_CASE("a message needs release, acquire, its wait and its acknowledgement") {
    using enum Instruction::Kind;
    constexpr auto relaxed = memory_order_relaxed, release = memory_order_release,
                   acquire = memory_order_acquire;
    const auto failure = [](const SmallProgram& sender, const SmallProgram& receiver) {
        return outcomes_of({sender, receiver}).exploration.failure;
    };
    const SmallProgram sender = program({{write}, {store, 0, 1, release}}),
                       receiver = program({{wait, 0, 1, acquire}, {read}});
    REQUIRE(failure(sender, receiver) == ExploredFailure::none);
    REQUIRE(failure(program({{write}, {store, 0, 1}}), receiver) == ExploredFailure::race);
    REQUIRE(failure(sender, program({{wait, 0, 1}, {read}})) == ExploredFailure::race);
    REQUIRE(failure(sender, program({{read}})) == ExploredFailure::race);
    REQUIRE(failure(sender, program({{wait, 0, 2, acquire}})) == ExploredFailure::deadlock);
    const SmallProgram acknowledges =
        program({{wait, 0, 1, acquire}, {read}, {store, 1, 1, release}});
    REQUIRE(failure(program({{write}, {store, 0, 1, release}, {wait, 1, 1, acquire}, {write}}),
                    acknowledges) == ExploredFailure::none);
    REQUIRE(failure(program({{write}, {store, 0, 1, release}, {write}}), acknowledges) ==
            ExploredFailure::race);
    REQUIRE(failure(program({{write}, {fence, 0, 0, release}, {store, 0, 1, relaxed}}),
                    program({{wait, 0, 1, relaxed}, {fence, 0, 0, acquire}, {read}})) ==
            ExploredFailure::none);
}

TEST_CASE("memory is afterwards what it was, and what cannot be explored is refused") {
    Explored explored;
    const SmallProgram writer = program({{Instruction::write, 0, 7}});
    launch_program(explored.add_stream(), explored.memory(), 0, writer);
    explored.run();
    REQUIRE(explored.memory()->data[0] == 0);
    Stream elsewhere;
    launch_program(elsewhere, explored.memory(), 0, writer);
    REQUIRE_THROWS_WITH(explored.run(), ContainsSubstring("on streams that are not explored"));
}

}  // namespace ddp::test
