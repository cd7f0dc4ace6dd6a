// What the chapter shows: a step by hand, one process for all devices, metrics over ranks, drift, a
// collective that rank 0 calls alone, and training runs.
#include <cmath>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/averages.hpp"
#include "11_data_parallel/one_process.hpp"
#include "11_data_parallel/replica.hpp"
#include "11_data_parallel/show/small_numbers.hpp"
#include "11_data_parallel/support/drift.hpp"
#include "11_data_parallel/training_result.hpp"
#include "tests/chapters/support/golden_training.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns what `work` returns on each of `ranks` ranks, with a communicator and a device of their
// own.
template <class Result>
std::vector<Result> on_ranks(int ranks, const std::function<Result(Communicator&, Device&)>& work) {
    World world(thread_options(ranks));
    std::vector<Result> results(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        results[static_cast<std::size_t>(rank.rank())] = work(*communicator, device);
    });
    return results;
}

LabelledImages stripes(int count) {
    LabelledImages images{1, 28, 28, {}, {}};
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 784; p++)
            images.pixels.push_back(p / 28 == n % 10 * 2 ? 200 : 10);
        images.labels.push_back(static_cast<std::uint8_t>(n % 10));
    }
    return images;
}

}  // namespace

TEST_CASE("first step: 100 samples are divided, and +2 and +4 become 3") {
    for (const int ranks : {1, 2, 3, 4, 7}) {
        const auto steps = on_ranks<FirstStep>(ranks, take_first_step);
        int samples = 0;
        for (int r = 0; r < ranks; r++) {
            const FirstStep& mine = steps[static_cast<std::size_t>(r)];
            CAPTURE(ranks, r);
            samples += mine.samples;
            REQUIRE(mine.begin == 1);
            REQUIRE(mine.gradient == 2.0f * static_cast<float>(r + 1));
            REQUIRE(mine.average == static_cast<float>(ranks + 1));
            REQUIRE(mine.end == steps[0].end);
        }
        REQUIRE(samples == 100);
        if (ranks == 4)
            REQUIRE(steps[3].samples == 25);
    }
}

TEST_CASE("one process: replicas learn what one device learns from the whole batch") {
    Device device(test_memory);
    for (const int samples : {12, 7, 2})
        for (const int replicas : {1, 2, 3, 4}) {
            std::vector<int> which;
            for (int i = 0; i < samples; i++)
                which.push_back(i);
            Random random(5), others(6);
            const auto one = make_small_mlp(device, random);
            Random again(5);
            const auto many = make_small_mlp(device, again);
            DataParallel data_parallel(device, *many, replicas, [&](Device& of) {
                return make_small_mlp(of, others);  // other numbers, which replicate overwrites
            });
            const Batch batch = batch_of(device, which);
            Tape tape(device);
            const Variable loss =
                cross_entropy(one->forward(tape.constant(batch.images)), batch.labels);
            tape.backward(loss);
            for (int step = 0; step < 2; step++) {  // the second finds gradients of the first
                for (const auto& parameter : many->parameters())
                    parameter->clear_gradient();
                const double found = data_parallel.learn(batch);
                CAPTURE(samples, replicas, step);
                REQUIRE(found == Approx(loss.value().to_host()[0]).epsilon(1e-5));
                for (std::size_t p = 0; p < one->parameters().size(); p++) {
                    const std::vector<float> right = one->parameters()[p]->gradient().to_host();
                    const std::vector<float> mine = many->parameters()[p]->gradient().to_host();
                    for (std::size_t i = 0; i < right.size(); i++)
                        REQUIRE(mine[i] == Approx(right[i]).margin(1e-6));
                }
            }
        }
}

TEST_CASE("averages: sums and counts are added, and the mean of means is another number") {
    for (const int ranks : {1, 2, 3, 4}) {
        const auto score_of = [](int r) {
            return Score{static_cast<double>(r * r), static_cast<double>(3 + 5 * r)};
        };
        Score right;
        double means = 0;
        for (int r = 0; r < ranks; r++) {
            right.correct += score_of(r).correct;
            right.samples += score_of(r).samples;
            means += score_of(r).accuracy() / ranks;
        }
        std::vector<double> wrong(static_cast<std::size_t>(ranks));
        const auto check = [&](bool reduces) {
            return on_ranks<Score>(ranks, [&](Communicator& communicator, Device& device) {
                const int r = communicator.rank().rank();
                wrong[static_cast<std::size_t>(r)] =
                    mean_of_accuracies(communicator, device.stream(), score_of(r));
                return reduces ? reduce_score(communicator, device.stream(), score_of(r))
                               : all_reduce_score(communicator, device.stream(), score_of(r));
            });
        };
        const auto everywhere = check(false), on_0 = check(true);
        CAPTURE(ranks);
        for (int r = 0; r < ranks; r++) {
            const auto place = static_cast<std::size_t>(r);
            REQUIRE(everywhere[place].correct == right.correct);
            REQUIRE(everywhere[place].samples == right.samples);
            REQUIRE(on_0[place].samples == (r == 0 ? right.samples : score_of(r).samples));
            REQUIRE(wrong[place] == Approx(means));
            if (ranks > 2)
                REQUIRE(std::abs(wrong[place] - right.accuracy()) > 0.01);
        }
    }
}

TEST_CASE("averages: in the table the mean of means is wrong for every number of ranks") {
    Score all;
    double means = 0;
    for (int ranks = 1; ranks <= 64; ranks++) {
        const Score mine = shown_score(ranks - 1);
        REQUIRE(mine.samples == 10 * ranks);
        REQUIRE(mine.correct < mine.samples);
        all.correct += mine.correct;
        all.samples += mine.samples;
        means += mine.accuracy();
        CAPTURE(ranks);
        if (ranks >= 2 && ranks <= 9)  // the text quotes three digits
            REQUIRE(all.accuracy() - means / ranks > 0.04);
        if (ranks > 1)
            REQUIRE(all.accuracy() - means / ranks > 0.01);
    }
}

TEST_CASE("averages: predictions come by rank, however many each has") {
    for (const int ranks : {1, 2, 3, 4}) {
        const auto mine = [](int r) {
            std::vector<int> all;
            for (int i = 0; i < (r * 5) % 7; i++)
                all.push_back(100 * r + i);
            return all;
        };
        using Gathered = std::vector<std::vector<int>>;
        for (const Gathered& all :
             on_ranks<Gathered>(ranks, [&](Communicator&communicator, Device&device) {
                 return gather_predictions(communicator, device.stream(),
                                           mine(communicator.rank().rank()));
             })) {
            REQUIRE(all.size() == static_cast<std::size_t>(ranks));
            for (int r = 0; r < ranks; r++)
                REQUIRE(all[static_cast<std::size_t>(r)] == mine(r));
        }
    }
}

TEST_CASE("drift: zero between copies, and otherwise as much as was added") {
    for (const int ranks : {1, 2, 3}) {
        const auto drifts = on_ranks<double>(ranks, [](Communicator& communicator, Device& device) {
            Random random(1);
            const auto model = make_small_mlp(device, random);
            Drift drift(communicator, device, *model);
            copy_from_rank_0(communicator, device, *model);
            if (drift.measure() != 0)
                return -1.0;
            // Every number of rank r becomes r + 1 times as large: r times its length away.
            for (const auto& parameter : model->parameters()) {
                std::vector<float> values = parameter->value.to_host();
                for (float& value : values)
                    value *= static_cast<float>(communicator.rank().rank() + 1);
                parameter->value.copy_from(values);
            }
            return drift.measure();
        });
        for (const double drift : drifts)
            REQUIRE(drift == Approx(ranks == 1 ? 0 : ranks == 2 ? 1 : 1.5).margin(1e-5));
    }
}

TEST_CASE(
    "rank 0 alone: a collective of its own fails soon and by name, and for all it goes through") {
    for (const int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        const std::string failure =
            failure_of(world, [](Rank& rank) { validate_on_rank_0(rank, false); });
        CAPTURE(ranks, failure);
        REQUIRE(has(failure, "\"validation loss\""));
        REQUIRE(has(failure, "\"gradients\""));
        REQUIRE(failure_of(world, [](Rank& rank) { validate_on_rank_0(rank, true); }) == "");
    }
}

TEST_CASE(
    "training result: a loss for each batch, and average_gradients is called after each backward") {
    Device device(test_memory);
    Random random(1);
    const LabelledImages images = stripes(50);
    Loader loader(device, images, {0.04f, 1.0f}, 8);
    loader.start_epoch(in_order(50));
    const auto model = make_mlp(device, random, {784, 10});
    const std::uint64_t before = hash_of(model->parameters());
    int calls = 0, present = 0;
    const TrainingResult result = train(device, *model, loader, [&] {
        calls++;
        for (const auto& parameter : model->parameters())
            present += parameter->has_gradient();
    });
    REQUIRE(calls == 7);
    REQUIRE(present == 2 * 7);
    REQUIRE(result.losses.size() == 7);
    REQUIRE(result.losses[0] == Approx(2.3).margin(0.7));
    REQUIRE(result.losses[6] < 0.7 * result.losses[0]);
    REQUIRE(result.hash == hash_of(model->parameters()));
    REQUIRE(result.hash != before);
    REQUIRE(result.step_s > 0);
}

TEST_CASE("training result: the ranks' means, number by number, and how far apart two runs are") {
    World world(thread_options(3));
    std::vector<double> means;
    world.run([&](Rank& rank) {
        const double r = rank.rank();
        const std::vector<double> mine = mean_of_ranks(rank, {r, 10 + 3 * r, -r * r});
        if (rank.rank() == 2)
            means = mine;
    });
    REQUIRE(means.size() == 3);
    REQUIRE(means[0] == Approx(1));
    REQUIRE(means[1] == Approx(13));
    REQUIRE(means[2] == Approx(-5.0 / 3));
    REQUIRE(has(failure_of(world,
                           [](Rank& rank) {
                               const auto count =
                                   static_cast<std::size_t>(rank.rank() == 1 ? 2 : 3);
                               mean_of_ranks(rank, std::vector<double>(count));
                           }),
                "a mean over the ranks needs the same number of values from each"));
    REQUIRE(largest_difference({1, 2, 3}, {1.5, 2, 0}, 2) == 0.5);
    REQUIRE(largest_difference({1, 2, 3}, {1.5, 2, 0}, 9) == 3);
    REQUIRE(largest_difference({1}, {1}, 1) == 0);
}

}  // namespace ddp::test
