// Replicas: they become equal or are refused, and a check finds out whether they are equal.
#include "11_data_parallel/replica.hpp"
#include "10_nodes/make_communicator.hpp"

#include <atomic>
#include <cstring>
#include <numeric>

#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Convolution and BatchNorm, so that there are buffers; one parameter is frozen.
std::unique_ptr<Sequential> make_normed(Device& device, Random& random, int channels = 3,
                                        const std::string& norm = "norm") {
    auto model = std::make_unique<Sequential>("normed");
    model->add<Conv2d>("conv", device, Conv2dShape{1, channels, 3}, random);
    model->add<BatchNorm2d>(norm, device, channels);
    model->parameters()[0]->is_frozen = true;
    return model;
}

// Returns all numbers of a model, those of its buffers at the end.
std::vector<float> numbers_of(const Module& model) {
    std::vector<float> all;
    for (const auto& parameter : model.parameters())
        for (const float value : parameter->value.to_host())
            all.push_back(value);
    for (const NamedTensor& buffer : model.buffers())
        for (const float value : buffer.value.to_host())
            all.push_back(value);
    return all;
}

// Returns numbers that encode their rank and their place.
void count_up(const Module& model, float from) {
    const auto count = [&from](Tensor value) {
        std::vector<float> values(value.size());
        std::iota(values.begin(), values.end(), from);
        from += static_cast<float>(values.size());
        value.copy_from(values);
    };
    for (const auto& parameter : model.parameters())
        count(parameter->value);
    for (const NamedTensor& buffer : model.buffers())
        count(buffer.value);
}

std::vector<float> counted(std::size_t count, float from) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
}

// Returns the error of copy_from_rank_0 for ranks that have these models.
std::string refusal(World& world,
                    const std::function<std::unique_ptr<Module>(Device&, int rank)>& make) {
    return failure_of(world, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto model = make(device, rank.rank());
        const auto communicator = make_communicator("native", rank, 1 << 20);
        copy_from_rank_0(*communicator, device, *model);
    });
}

}  // namespace

TEST_CASE("replicas: parameters and buffers become rank 0's, frozen ones too") {
    for (const int ranks : {1, 2, 3, 4, 7}) {
        World world(thread_options(ranks));
        const auto places = static_cast<std::size_t>(ranks);
        std::vector<std::vector<float>> before(places), after(places);
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            auto& device = make_run_scoped<Device>(rank, test_memory);
            Random random(1);
            const auto model = make_normed(device, random);
            count_up(*model, 1000.0f * static_cast<float>(rank.rank()) + 1);
            const auto communicator = make_communicator("native", rank, 1 << 20);
            before[place] = numbers_of(*model);
            copy_from_rank_0(*communicator, device, *model);
            after[place] = numbers_of(*model);
        });
        for (std::size_t place = 0; place < places; place++) {
            CAPTURE(ranks, place);
            REQUIRE(before[place] ==
                    counted(27 + 3 + 3 * 4, 1000.0f * static_cast<float>(place) + 1));
            REQUIRE(after[place] == before[0]);
        }
    }
}

TEST_CASE("replicas: buffers alone can be shared, and parameters stay as they are") {
    World world(thread_options(3));
    std::vector<std::vector<float>> after(3);
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(1);
        const auto model = make_normed(device, random);
        count_up(*model, 100.0f * static_cast<float>(rank.rank()));
        const auto communicator = make_communicator("native", rank, 1 << 20);
        ArenaBuffer<float> staging = communicator->allocate<float>(buffer_elements(*model));
        rank.barrier();
        broadcast_buffers(*communicator, device, *model, staging);
        communicator->synchronize(device.stream());
        after[static_cast<std::size_t>(rank.rank())] = numbers_of(*model);
    });
    for (std::size_t rank = 0; rank < 3; rank++) {
        std::vector<float> expected = counted(27 + 3 + 6, 100.0f * static_cast<float>(rank));
        for (const float buffer : counted(6, 36))
            expected.push_back(buffer);
        REQUIRE(after[rank] == expected);
    }
}

TEST_CASE(
    "replicas: another model on one rank is refused by its first difference, and that is all") {
    World world(thread_options(3));
    using Made = std::unique_ptr<Module>;
    const auto linear = [&](Device& device, int inputs, int outputs, bool has_bias = true) -> Made {
        Random mine(1);
        return std::make_unique<Linear>("linear", device, inputs, outputs, mine, has_bias);
    };
    const std::string same = ": all ranks must build the same model";
    REQUIRE(refusal(world, [&](Device& device,
                               int rank) { return linear(device, rank == 1 ? 5 : 4, 3); }) ==
            "rank 1: this rank's model has linear.weight [3, 5] where rank 0's has "
            "linear.weight [3, 4]" +
                same);
    // As many numbers, in another shape.
    REQUIRE(refusal(world,
                    [&](Device& device, int rank) {
                        return rank == 2 ? linear(device, 3, 4) : linear(device, 4, 3);
                    }) ==
            "rank 2: this rank's model has linear.weight [4, 3] where rank 0's has "
            "linear.weight [3, 4]" +
                same);
    REQUIRE(
        refusal(world, [&](Device& device, int rank) { return linear(device, 4, 3, rank != 1); }) ==
        "rank 1: this rank's model has nothing where rank 0's has linear.bias [3]" + same);
    REQUIRE(
        refusal(world, [&](Device& device, int rank) { return linear(device, 4, 3, rank == 1); }) ==
        "rank 1: this rank's model has linear.bias [3] where rank 0's has nothing" + same);
    REQUIRE(refusal(world,
                    [&](Device& device, int rank) -> Made {
                        Random mine(1);
                        return make_normed(device, mine, 3, rank == 2 ? "other" : "norm");
                    }) ==
            "rank 2: this rank's model has other.weight [3] where rank 0's has "
            "norm.weight [3]" +
                same);
    REQUIRE(refusal(world,
                    [&](Device& device, int rank) {
                        auto model = linear(device, 4, 3);
                        model->parameters()[1]->is_frozen = rank == 1;
                        return model;
                    }) ==
            "rank 1: this rank's model has linear.bias [3], frozen where rank 0's has "
            "linear.bias [3]" +
                same);
    REQUIRE(refusal(world, [&](Device& device, int) { return linear(device, 4, 3); }) == "");
}

TEST_CASE("replicas: every bit changes the hash") {
    Device device;
    const auto parameter =
        std::make_shared<Parameter>("p", Tensor(device, {3}, std::vector<float>{1.0f, 2.0f, 3.0f}));
    const auto hash_with = [&](std::size_t element, int bit) {
        std::vector<float> values{1.0f, 2.0f, 3.0f};
        std::uint32_t bits;
        std::memcpy(&bits, &values[element], sizeof bits);
        bits ^= bit < 0 ? 0u : 1u << bit;
        std::memcpy(&values[element], &bits, sizeof bits);
        parameter->value.copy_from(values);
        return hash_of({parameter});
    };
    std::vector<std::uint64_t> hashes{hash_with(0, -1)};
    REQUIRE(hash_with(1, -1) == hashes[0]);
    for (std::size_t element = 0; element < 3; element++)
        for (int bit = 0; bit < 32; bit++)
            hashes.push_back(hash_with(element, bit));
    parameter->value.copy_from(std::vector<float>{2.0f, 1.0f, 3.0f});
    hashes.push_back(hash_of({parameter}));
    std::ranges::sort(hashes);
    REQUIRE(std::ranges::adjacent_find(hashes) == hashes.end());
    REQUIRE(text_of_hash(0xabc) == "0000000000000abc");
    REQUIRE(text_of_hash(0xfedcba9876543210) == "fedcba9876543210");
}

TEST_CASE("replicas: ranks whose replicas have drifted apart are named") {
    World world(thread_options(4));
    const auto drift = [&](float by) {
        return failure_of(world, [&](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, test_memory);
            const float more = rank.rank() % 2 == 1 ? by : 0;
            const auto parameter = std::make_shared<Parameter>(
                "p", Tensor(device, {2}, std::vector<float>{1.0f, 1.0f + more}));
            require_equal_replicas(rank, {parameter});
        });
    };
    REQUIRE(drift(0) == "");
    REQUIRE(has(drift(1.2e-7f),  // one bit
                ": the replicas have drifted apart: the parameters of rank 1, 3 are not those of "
                "rank 0"));
}

TEST_CASE("replicas: what is kept until the run ends is there until every rank has ended it") {
    struct Witness {
        explicit Witness(std::atomic<int>& alive) : alive(alive) { alive++; }
        ~Witness() { alive--; }
        std::atomic<int>& alive;
    };
    World world(thread_options(3));
    std::atomic<int> alive = 0, seen_by_rank_0 = 0;
    const std::string failure = failure_of(world, [&](Rank& rank) {
        make_run_scoped<Witness>(rank, alive);
        rank.barrier();
        if (rank.rank() != 0)
            throw std::runtime_error("the others leave early");
        try {
            rank.barrier();  // released by their end
        } catch (const RunFailed&) {
            seen_by_rank_0 = alive.load();
        }
    });
    REQUIRE(has(failure, "the others leave early"));
    REQUIRE(seen_by_rank_0 == 3);
    REQUIRE(alive == 0);
}

TEST_CASE("replicas: a parameter without a gradient is refused before the others wait for it") {
    World world(thread_options(2, 10));
    REQUIRE(failure_of(world,
                       [&](Rank& rank) {
                           auto& device = make_run_scoped<Device>(rank, test_memory);
                           Random random(1);
                           const auto model = make_small_mlp(device, random);
                           const auto communicator = make_communicator("native", rank, 1 << 20);
                           NaiveDdp ddp(*communicator, device, *model);
                           for (const auto& parameter : model->parameters())
                               if (rank.rank() == 0 || parameter->name != "linear1.weight")
                                   fill(parameter->gradient_for_writing(), 1.0f);
                           ddp.average_gradients();
                           communicator->synchronize(device.stream());
                       }) ==
            "rank 1: parameter 'linear1.weight' has no gradient: no backward pass has reached it "
            "since the last clear_gradient()");
}

TEST_CASE("replicas: metrics are added up, not averaged") {
    World world(thread_options(3));
    std::vector<Metrics::Totals> totals(3);
    const auto add_up_all = [&](const std::vector<Metrics::Totals>& parts) {
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            totals[place] = add_up(rank, parts[place]);
        });
    };
    // Rank 2 has seen one sample only.
    add_up_all({{20.0, 4, 10, 2, -1}, {10.0, 5, 9, 2, -1}, {9.0, 0, 1, 1, -1}});
    for (const Metrics::Totals& sum : totals) {
        REQUIRE(sum.loss() == Approx(39.0 / 20));
        REQUIRE(sum.accuracy() == Approx(9.0 / 20));
        REQUIRE(sum.samples == 20);
        REQUIRE(sum.steps == 2);
        REQUIRE(sum.first_bad_step == -1);
    }
    add_up_all({{0, 0, 1, 9, -1}, {0, 0, 1, 9, 7}, {0, 0, 1, 9, 4}});
    REQUIRE(totals[0].first_bad_step == 4);
    add_up_all({{0, 0, 1, 9, 0}, {0, 0, 1, 9, 7}, {0, 0, 1, 9, -1}});
    REQUIRE(totals[2].first_bad_step == 0);
}

TEST_CASE("replicas: every rank has its share of the samples, all equally many") {
    std::vector<int> order(100);
    std::iota(order.begin(), order.end(), 1000);
    REQUIRE(shard(order, 0, 4).size() == 25);
    REQUIRE(shard(order, 3, 4).size() == 25);
    REQUIRE(shard(order, 1, 4)[0] == 1001);
    REQUIRE(shard(order, 1, 4)[24] == 1097);
    for (const int ranks : {1, 2, 3, 7, 100}) {
        CAPTURE(ranks);
        std::vector<int> all;
        for (int rank = 0; rank < ranks; rank++) {
            const std::vector<int> part = shard(order, rank, ranks);
            REQUIRE(part.size() == static_cast<std::size_t>(100 / ranks));
            all.insert(all.end(), part.begin(), part.end());
        }
        std::ranges::sort(all);
        // The remainder of the division is missing at the end.
        REQUIRE(all == std::vector<int>(order.begin(), order.begin() + 100 / ranks * ranks));
    }
    REQUIRE(shard(order, 0, 101).empty());
    REQUIRE(shard({}, 0, 2).empty());
}

// On a device of 2 GiB (see CMakeLists.txt): a quarter of it is left for what is not reserved.
TEST_CASE("ranks that share a small device share its memory", "[.small_memory]") {
    World four(thread_options(4)), many(thread_options(30));
    std::atomic<int> wrong = 0;
    four.run([&](Rank& rank) { wrong += rank_memory(rank) != std::size_t{384} << 20; });
    REQUIRE(wrong == 0);
    REQUIRE(has(failure_of(many, [](Rank& rank) { rank_memory(rank); }),
                "30 ranks share a device of 2 GiB, where each needs 64 MiB and more: start at most "
                "24 ranks on it."));
}

}  // namespace ddp::test
