// find_unused_parameters: ranks may use different parameters; what no rank uses stays as it was.
#include <atomic>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "tests/chapters/17_unused_parameters/paths.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;
using Names = std::vector<std::string>;
constexpr auto every_step = Walker::Search::every_step;

// Every step and every rank has other branches. In step 2 no rank takes c, and in step 4 all take
// only a.
std::string changing_branches(int step, int rank) {
    const char* const branches[] = {"a", "ab", "c", "abc", "b", "ac", "cb"};
    if (step == 4)
        return "a";
    if (step == 2)
        return rank == 1 ? "ab" : "b";
    return branches[(3 * step + 2 * rank) % 7];
}

// Returns a loss of a part of the output, which the head does not contribute to. The search begins
// at the whole output, and cannot know that.
Variable loss_before_head(Walker& walker, const std::string& branches, int number) {
    walker.forward(branches, number);
    return weighted_sum(walker.model.before_head, Values(15, 1));
}

}  // namespace

TEST_CASE("find_unused: on any branches, ranks learn what one rank learns from all samples") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(difference_from_walking_alone(world, every_step, 7, changing_branches) == "");
    }
}

TEST_CASE("find_unused: the search finds what the output does not depend on") {
    Device device(test_memory);
    Random random(1);
    Paths model(device, random);
    const auto unreached = [&](const std::string& branches) {
        Tape tape(device);
        model.branches = branches;
        const Batch batch = batch_of(device, {1, 2});
        return names_of(
            unreached_from(model.forward(tape.constant(batch.images)), model.parameters()));
    };
    REQUIRE(unreached("abc") == "");
    REQUIRE(unreached("ac") == "b.weight, b.bias");
    REQUIRE(unreached("c") == "a.weight, a.bias, b.weight, b.bias");
    REQUIRE(unreached("a") == "b.weight, b.bias, c.weight, c.bias, tied.weight, tied.bias");
}

TEST_CASE("find_unused: a rank that did not use a parameter gets the others' sum, divided by all") {
    World world(thread_options(3));
    std::vector<Values> own(3), own_tied(3), reduced(3), tied(3);
    std::vector<int> has_c(3, 1);  // not of bool: its elements share bytes
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step);
        walker.step("abc", 0);
        // Ranks 0 and 2 use b and the tied layer; no rank uses c.
        const Variable loss = walker.forward(rank.rank() == 1 ? "a" : "ab", 1);
        walker.ddp.backward(loss, [&](Parameter& parameter) {
            if (parameter.name == "b.bias")
                own[place] = parameter.gradient().to_host();
            if (parameter.name == "tied.bias")
                own_tied[place] = parameter.gradient().to_host();
        });
        walker.synchronize();
        reduced[place] = walker.gradient("b.bias");
        tied[place] = walker.gradient("tied.bias");
        has_c[place] = walker.parameter("c.weight").has_gradient();
    });
    REQUIRE(own[1].empty());
    REQUIRE(has_c == std::vector{0, 0, 0});
    for (std::size_t rank = 0; rank < 3; rank++) {
        REQUIRE(reduced[rank].size() == 7);
        REQUIRE(tied[rank].size() == 5);
        for (std::size_t i = 0; i < 7; i++)
            REQUIRE(reduced[rank][i] == Approx((own[0][i] + own[2][i]) / 3).margin(1e-8));
        for (std::size_t i = 0; i < 5; i++)
            REQUIRE(tied[rank][i] == Approx((own_tied[0][i] + own_tied[2][i]) / 3).margin(1e-8));
    }
}

TEST_CASE("find_unused: what no rank uses keeps its bits: the optimizer does not move it") {
    World world(thread_options(3));
    std::vector<Values> before(3), after(3), moved(3);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step);
        for (int step = 0; step < 2; step++)  // momentum
            walker.step("abc", step);
        before[place] = walker.parameter("c.weight").value.to_host();
        walker.step("ab", 2);
        walker.step("a", 3);
        after[place] = walker.parameter("c.weight").value.to_host();
        walker.step(rank.rank() == 2 ? "c" : "a", 4);
        moved[place] = walker.parameter("c.weight").value.to_host();
        walker.synchronize();
    });
    for (std::size_t rank = 0; rank < 3; rank++) {
        REQUIRE(after[rank] == before[0]);
        REQUIRE(moved[rank] == moved[0]);
    }
    REQUIRE(moved[0] != after[0]);
}

// The old gradients differ between ranks: an average would change them.
TEST_CASE("find_unused: an old gradient that was not cleared keeps its bits as well") {
    World world(thread_options(3));
    std::vector<Values> old(3), after(3), own(3), used_by_one(3);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step);
        walker.backward("abc", 0);
        walker.synchronize();
        walker.tape.clear();
        for (int i = 0; i < 7; i++)
            old[place].push_back(0.1f * static_cast<float>(i) + static_cast<float>(rank.rank()));
        walker.parameter("c.bias").gradient_for_writing().copy_from(old[place]);
        walker.backward("ab", 1);
        walker.synchronize();
        after[place] = walker.gradient("c.bias");
        walker.tape.clear();
        const Variable loss = walker.forward(rank.rank() == 0 ? "c" : "a", 2);
        walker.ddp.backward(loss, [&](Parameter& parameter) {
            if (parameter.name == "c.bias")
                own[place] = parameter.gradient().to_host();
        });
        walker.synchronize();
        used_by_one[place] = walker.gradient("c.bias");
    });
    for (std::size_t rank = 0; rank < 3; rank++) {
        REQUIRE(after[rank] == old[rank]);
        REQUIRE(used_by_one[rank] == used_by_one[0]);
        for (std::size_t i = 0; i < 7; i++)
            REQUIRE(used_by_one[rank][i] == Approx((own[0][i] + old[1][i] + old[2][i]) / 3));
    }
}

TEST_CASE("find_unused: what was used within no_sync counts as used") {
    World world(thread_options(2));
    std::vector<Values> own(2), reduced(2), on_neither(2);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step);
        walker.step("abc", 0);
        {
            const auto no_sync = walker.ddp.no_sync();
            walker.backward(rank.rank() == 0 ? "ab" : "a", 1);
            own[place] = walker.gradient("b.bias");
            walker.tape.clear();
        }
        walker.backward("a", 2);
        walker.synchronize();
        reduced[place] = walker.gradient("b.bias");
        on_neither[place] = walker.gradient("c.bias");
        walker.clear();
        walker.backward("a", 3);  // a new map
        walker.synchronize();
        if (walker.parameter("b.bias").has_gradient())
            throw std::runtime_error("the map of the last step counts in this one");
    });
    REQUIRE(own[1].empty());
    REQUIRE(on_neither[0].empty());
    for (std::size_t rank = 0; rank < 2; rank++) {
        REQUIRE(reduced[rank].size() == 7);
        for (std::size_t i = 0; i < 7; i++)
            REQUIRE(reduced[rank][i] == own[0][i] / 2);
    }
}

// If rank 0, which has used everything, waited for the map, it would wait for ever.
TEST_CASE(
    "find_unused: a rank that used everything does not wait for the map, which is sent last") {
    World world(thread_options(2, 20));
    std::atomic<bool> is_back = false;
    std::vector<Names> sent(2);
    const std::string failure = failure_of(world, [&](Rank& rank) {
        Walker walker(rank, every_step, 300);
        walker.step("abc", 0);
        walker.synchronize();
        walker.sent.clear();
        const auto settle = walker.hooks.before_finalize;
        walker.hooks.before_finalize = [&, settle] {
            walker.sent.push_back("map");
            settle();
        };
        walker.ddp.set_hooks(walker.hooks);
        const Variable loss = walker.forward(rank.rank() == 0 ? "abc" : "a", 1);
        while (rank.rank() == 1 && !is_back) {
            rank.check();
            std::this_thread::yield();
        }
        walker.ddp.backward(loss);
        if (rank.rank() == 0)
            is_back = true;
        walker.synchronize();
        sent[static_cast<std::size_t>(rank.rank())] = walker.sent;
    });
    REQUIRE(failure == "");
    REQUIRE(sent[0].size() > 2);
    REQUIRE(sent[0].back() == "map");
    REQUIRE(sent[1] == sent[0]);
}

TEST_CASE("find_unused: buckets follow the model's list, and are never rebuilt") {
    World world(thread_options(2));
    constexpr std::size_t cap = 300;
    std::vector<int> is_as_first(2);
    bool is_rebuilt = false;
    world.run([&](Rank& rank) {
        Walker walker(rank, every_step, cap), plain(rank, Walker::Search::none, cap);
        for (int step = 0; step < 3; step++) {
            walker.step("abc", step);
            plain.step("abc", step);
        }
        const GradientSizes sizes = gradient_sizes(walker.model.parameters());
        is_as_first[static_cast<std::size_t>(rank.rank())] =
            walker.ddp.gradients().plan() == first_plan(sizes, {cap});
        if (rank.rank() == 0)
            is_rebuilt = plain.ddp.gradients().plan() != walker.ddp.gradients().plan();
        walker.synchronize();
        plain.synchronize();
    });
    REQUIRE(is_as_first == std::vector{1, 1});
    REQUIRE(is_rebuilt);
}

TEST_CASE("find_unused: it reports whether it was needed") {
    World world(thread_options(2));
    std::vector<bool> found;
    world.run([&](Rank& rank) {
        Walker walker(rank, every_step);
        std::vector<bool> mine;
        for (const std::string branches : {"abc", "ab", "abc"}) {
            walker.step(branches, 0);
            mine.push_back(walker.find_unused->has_found());
        }
        walker.synchronize();
        if (rank.rank() == 1)
            found = mine;
    });
    REQUIRE(found == std::vector<bool>{false, true, true});
}

TEST_CASE("find_unused: a rank whose loss leaves out an output gets what the others have") {
    World world(thread_options(3));
    std::vector<Values> own(3), reduced(3), a(3);
    std::vector<int> has_found(3);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step, 300);
        walker.step("abc", 0);
        const Variable loss =
            rank.rank() == 1 ? loss_before_head(walker, "abc", 1) : walker.forward("abc", 1);
        walker.ddp.backward(loss, [&](Parameter& parameter) {
            if (parameter.name == "head.bias")
                own[place] = parameter.gradient().to_host();
        });
        walker.synchronize();
        reduced[place] = walker.gradient("head.bias");
        a[place] = walker.gradient("a.bias");
        has_found[place] = walker.find_unused->has_found();
    });
    REQUIRE(own[1].empty());
    REQUIRE(has_found == std::vector{0, 1, 0});
    for (std::size_t rank = 0; rank < 3; rank++) {
        REQUIRE(a[rank] == a[0]);
        REQUIRE(reduced[rank].size() == 10);
        for (std::size_t i = 0; i < 10; i++)
            REQUIRE(reduced[rank][i] == Approx((own[0][i] + own[2][i]) / 3).margin(1e-8));
    }
}

TEST_CASE("find_unused: what all ranks' losses leave out keeps no gradient, or its old one") {
    World world(thread_options(2));
    std::vector<Values> absent(2), old(2), kept(2), a(2);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Walker walker(rank, every_step, 300);
        walker.step("abc", 0);
        walker.ddp.backward(loss_before_head(walker, "abc", 1));
        walker.synchronize();
        absent[place] = walker.gradient("head.bias");
        walker.clear();
        for (int i = 0; i < 10; i++)
            old[place].push_back(0.1f * static_cast<float>(i) + static_cast<float>(rank.rank()));
        walker.parameter("head.bias").gradient_for_writing().copy_from(old[place]);
        walker.ddp.backward(loss_before_head(walker, "abc", 2));
        walker.synchronize();
        kept[place] = walker.gradient("head.bias");
        a[place] = walker.gradient("a.bias");
    });
    REQUIRE(a[0].size() == 5);
    REQUIRE(a[1] == a[0]);
    for (std::size_t rank = 0; rank < 2; rank++) {
        REQUIRE(absent[rank].empty());
        REQUIRE(kept[rank] == old[rank]);
    }
}

// A forward without a backward leaves nothing behind: a test, for example, outside of no_sync.
TEST_CASE("find_unused: a gradient is not kept for a step whose backward never came") {
    World world(thread_options(2));
    std::vector<int> has_c(2, 1);
    world.run([&](Rank& rank) {
        Walker walker(rank, every_step);
        walker.backward("abc", 0);
        walker.tape.clear();
        walker.forward("ab", 1);  // c's gradient is still there, and would be kept
        walker.clear();
        walker.backward("ab", 2);
        walker.synchronize();
        has_c[static_cast<std::size_t>(rank.rank())] = walker.parameter("c.weight").has_gradient();
    });
    REQUIRE(has_c == std::vector{0, 0});
}

TEST_CASE("find_unused: from the third step on nothing is allocated") {
    World world(thread_options(2));
    std::vector<std::size_t> allocations;
    world.run([&](Rank& rank) {
        Walker walker(rank, every_step);
        for (int step = 0; step < 6; step++) {
            walker.step(rank.rank() == 0 ? "abc" : "ac", 0);
            if (rank.rank() == 1)
                allocations.push_back(walker.device.memory().live_bytes);
        }
        walker.synchronize();
    });
    for (std::size_t i = 3; i < allocations.size(); i++)
        REQUIRE(allocations[i] == allocations[2]);
}

}  // namespace ddp::test
