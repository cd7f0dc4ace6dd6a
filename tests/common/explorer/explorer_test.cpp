// The explorer finds exactly the outcomes that a simple model finds, names what is wrong with a
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

Exploration explore_message(const Message& message) {
    Explored explored;
    launch_sender(explored.add_stream(), explored.memory(), message);
    launch_receiver(explored.add_stream(), explored.memory(), message);
    explored.options().what_is_wrong = [&] {
        return explored.memory()->seen[0][0] == 7 ? "" : std::string("the message is not 7");
    };
    return explored.run();
}

}  // namespace

TEST_CASE("the explorer finds the outcomes that a simple model finds") {
    std::mt19937 random(20260);
    std::size_t outcomes = 0, deadlocks = 0;
    for (int i = 0; i < 800; i++) {
        std::vector<SmallProgram> programs(2 + random() % 2);
        for (SmallProgram& each : programs)
            each = random_program(random);
        // Half of them begin with flags that are up.
        const FirstValues first =
            i % 2 == 0 ? FirstValues{} : FirstValues{static_cast<unsigned int>(i) % 3, 1};
        const ExploredOutcomes found = outcomes_of(programs, first);
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

TEST_CASE("blocks of a kernel run as streams do") {
    std::mt19937 random(42);
    for (int i = 0; i < 100; i++) {
        std::vector<SmallProgram> programs(2 + random() % 2);
        for (SmallProgram& each : programs)
            each = random_program(random);
        const ExploredOutcomes found = outcomes_of(programs, {}, launch_as_blocks);
        const PossibleOutcomes possible = outcomes_by_model(programs);
        CAPTURE(i);
        REQUIRE((found.exploration.failure == ExploredFailure::deadlock) == possible.has_deadlock);
        if (!possible.has_deadlock)
            REQUIRE(found.outcomes == possible.outcomes);
    }
}

TEST_CASE("a kernel begins when all blocks of the one before have ended") {
    Explored apart;
    launch_writing_blocks(apart.add_stream(), apart.memory());
    launch_reading_blocks(apart.add_stream(), apart.memory());
    const Exploration race = apart.run();
    REQUIRE(race.failure == ExploredFailure::race);
    REQUIRE(race.conflict.stream != race.timeline.back().stream);
    REQUIRE(race.conflict.block != race.timeline.back().block);
    Explored behind;
    Stream& stream = behind.add_stream();
    launch_writing_blocks(stream, behind.memory());
    launch_reading_blocks(stream, behind.memory());
    behind.options().what_is_wrong = [&] {
        const auto& seen = behind.memory()->seen[0];
        return seen[0] == 7 && seen[1] == 7 ? "" : std::string("not all was written");
    };
    REQUIRE(behind.run().failure == ExploredFailure::none);
    // Flags, too: what a block has stored, the next kernel finds.
    Explored flags;
    Stream& of_flags = flags.add_stream();
    SmallPrograms stores, loads;
    stores[0] = program({{Instruction::store, 0, 1}});
    loads[1] = program({{Instruction::load, 0}});
    launch_blocks(of_flags, flags.memory(), 2, stores);
    launch_blocks(of_flags, flags.memory(), 2, loads);
    flags.options().what_is_wrong = [&] {
        return flags.memory()->seen[1][0] == 1 ? "" : std::string("the flag has not arrived");
    };
    REQUIRE(flags.run().failure == ExploredFailure::none);
}

TEST_CASE("stores wait in buffers, and a fence waits for them") {
    const auto store_and_load = [](int own, bool has_fence) {
        const Instruction store{Instruction::store, own, 1, memory_order_release};
        const Instruction load{Instruction::load, 1 - own, 0, memory_order_acquire};
        const Instruction fence{Instruction::fence, 0, 0, memory_order_seq_cst};
        return has_fence ? program({store, fence, load}) : program({store, load});
    };
    const ExploredOutcomes without =
        outcomes_of({store_and_load(0, false), store_and_load(1, false)});
    REQUIRE(without.outcomes.size() == 4);  // both may see nothing of the other
    const ExploredOutcomes with = outcomes_of({store_and_load(0, true), store_and_load(1, true)});
    REQUIRE(with.outcomes.size() == 3);
    REQUIRE(with.outcomes.count(Outcome{0, 0, 0, 0, 0, 0, 0, 0}) == 0);
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
    REQUIRE(explore_message({}).failure == ExploredFailure::none);
    REQUIRE(explore_message({.is_acknowledged = true}).failure == ExploredFailure::none);
    REQUIRE(explore_message({.store = memory_order_relaxed}).failure == ExploredFailure::race);
    REQUIRE(explore_message({.load = memory_order_relaxed}).failure == ExploredFailure::race);
    REQUIRE(explore_message({.is_acknowledged = true, .waits_for_ack = false}).failure ==
            ExploredFailure::race);
    const Exploration deadlock = explore_message({.awaited = 2});
    REQUIRE(deadlock.failure == ExploredFailure::deadlock);
    REQUIRE(deadlock.timeline.back().action == cuda_on_cpu::Action::wait);
    REQUIRE(deadlock.timeline.back().stream == 1);
}

TEST_CASE("a wait may poll by relaxed loads if its last one is with acquire") {
    REQUIRE(explore_message({.polls_relaxed = true}).failure == ExploredFailure::none);
    const Exploration race = explore_message({.load = memory_order_relaxed, .polls_relaxed = true});
    REQUIRE(race.failure == ExploredFailure::race);
    // Poll and last load are one step, so two posts to one flag need no further execution.
    const Exploration acknowledged =
        explore_message({.polls_relaxed = true, .is_acknowledged = true});
    REQUIRE(acknowledged.failure == ExploredFailure::none);
    REQUIRE(acknowledged.executions == explore_message({.is_acknowledged = true}).executions);
}

// A sender that posts twice before the receiver looks makes such a wait endless. It is found
// because the wait that has ended with 1 is asked whether 2 would have ended it.
TEST_CASE("a wait for exactly a value fails where the flag may have passed it") {
    const Message twice{.is_posted_twice = true};
    REQUIRE(explore_message(twice).failure == ExploredFailure::none);
    REQUIRE(explore_message(twice).executions == 1);
    Message exactly{.awaits_exactly = true, .is_posted_twice = true};
    REQUIRE(explore_message(exactly).failure == ExploredFailure::deadlock);
    exactly.polls_relaxed = true;
    REQUIRE(explore_message(exactly).failure == ExploredFailure::deadlock);
    exactly.is_posted_twice = false;
    REQUIRE(explore_message(exactly).failure == ExploredFailure::none);
}

// The first stream's 2 ends the wait; or it is passed over by the sum, in which the wait is in
// vain, and the second stream's 2 ends it. Who sees only the latter has not seen that both come
// first.
TEST_CASE("a wait for exactly a value may have found it before another stream has passed it") {
    using enum Instruction::Kind;
    const std::vector<SmallProgram> programs{
        program({{load, 0}, {store, 1, 2}}),
        program({{add, 1, 2}, {load, 0}, {store, 1, 2, memory_order_release}}),
        program({{wait_exactly, 1, 2}, {store, 1, 2}, {store, 0, 1}})};
    const ExploredOutcomes found = outcomes_of(programs);
    REQUIRE(found.outcomes == outcomes_by_model(programs).outcomes);
    REQUIRE(found.outcomes.count(Outcome{0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0}) == 1);
}

// Who waits for any of two flags may find either up first: though both are, when the wait ends, the
// one that it has looked at in vain may have come later.
TEST_CASE("a wait for any of two flags finds each of them first") {
    using enum Instruction::Kind;
    const SmallProgram waits = program({{wait_any, 1, 1}, {load, 0}, {load, 1}});
    const std::vector<SmallProgram> posts{waits, program({{store, 0, 1}}),
                                          program({{store, 1, 1}})};
    const ExploredOutcomes found = outcomes_of(posts);
    REQUIRE(found.outcomes == outcomes_by_model(posts).outcomes);
    const auto first_seen = [](unsigned int first, unsigned int zero, unsigned int one) {
        return Outcome{first, zero, one, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    };
    REQUIRE(found.outcomes == std::set<Outcome>{first_seen(1, 0, 1), first_seen(1, 1, 1),
                                                first_seen(2, 1, 0), first_seen(2, 1, 1)});
    // Who waits for both, in whichever order they come, has no choice.
    REQUIRE(outcomes_of({program({{wait, 0, 1}, {wait, 1, 1}}), program({{store, 0, 1}}),
                         program({{store, 1, 1}})})
                .exploration.executions == 1);
}

TEST_CASE("a wait may sleep twice between two polls") {
    REQUIRE(explore_message({.sleeps = 2}).failure == ExploredFailure::none);
    REQUIRE(explore_message({.sleeps = 2}).executions == 1);
    REQUIRE(explore_message({.load = memory_order_relaxed, .sleeps = 2}).failure ==
            ExploredFailure::race);
}

TEST_CASE("what several streams post in slices is one execution") {
    using enum Instruction::Kind;
    const auto post = [](int place) {
        return program({{store, place, 1, memory_order_release},
                        {store, place, 2, memory_order_release},
                        {store, place, 3, memory_order_release}});
    };
    const SmallProgram reader = program({{wait, 0, 1, memory_order_acquire},
                                         {wait, 1, 2, memory_order_acquire},
                                         {wait, 0, 2, memory_order_acquire},
                                         {wait, 1, 3, memory_order_acquire}});
    REQUIRE(outcomes_of({post(0), post(1), reader}).exploration.executions == 1);
    REQUIRE(outcomes_of({reader, post(0), post(1)}).exploration.executions == 1);
}

TEST_CASE("a wait that is over at first is one execution with what is posted later") {
    using enum Instruction::Kind;
    const auto post = [](int place) {
        return program({{store, place, 4, memory_order_release},
                        {store, place, 5, memory_order_release},
                        {store, place, 6, memory_order_release}});
    };
    const SmallProgram reader = program({{wait, 0, 2, memory_order_acquire},
                                         {wait, 1, 3, memory_order_acquire},
                                         {wait, 0, 3, memory_order_acquire},
                                         {wait, 1, 5, memory_order_acquire}});
    REQUIRE(outcomes_of({post(0), post(1), reader}, {3, 3}).exploration.executions == 1);
    REQUIRE(outcomes_of({reader, post(0), post(1)}, {3, 3}).exploration.executions == 1);
    // Not so for a value that it may have passed.
    const SmallProgram exactly = program({{wait_exactly, 0, 3, memory_order_acquire}});
    REQUIRE(outcomes_of({exactly, post(0)}, {3}).exploration.failure == ExploredFailure::deadlock);
    REQUIRE(outcomes_of({post(0), exactly}, {3}).exploration.failure == ExploredFailure::deadlock);
}

TEST_CASE("fences order relaxed flags") {
    const Message fenced{
        .store = memory_order_relaxed, .load = memory_order_relaxed, .has_fences = true};
    REQUIRE(explore_message(fenced).failure == ExploredFailure::none);
    Message acknowledged = fenced;
    acknowledged.is_acknowledged = true;
    REQUIRE(explore_message(acknowledged).failure == ExploredFailure::none);
}

TEST_CASE("a timeline ends with the two accesses of a race") {
    const Exploration race = explore_message({.store = memory_order_relaxed});
    REQUIRE(race.timeline.size() >= 3);
    REQUIRE(race.timeline.front().action == cuda_on_cpu::Action::write);
    REQUIRE(race.timeline.back().action == cuda_on_cpu::Action::read);
    REQUIRE(race.timeline.back().stream == 1);
    REQUIRE(race.conflict.stream == 0);
    REQUIRE(race.conflict.action == cuda_on_cpu::Action::write);
    REQUIRE(race.conflict.address == race.timeline.back().address);
}

TEST_CASE("memory is afterwards what it was, and what cannot be explored is refused") {
    Explored explored;
    launch_sender(explored.add_stream(), explored.memory(), {});
    explored.run();
    REQUIRE(explored.run().executions == 1);  // the launch is forgotten: nothing happens
    Stream elsewhere;
    launch_sender(elsewhere, explored.memory(), {});
    REQUIRE_THROWS_WITH(explored.run(), ContainsSubstring("on streams that are not explored"));
}

}  // namespace ddp::test
