// The training: the same with any number of ranks, the same bits after any interruption, and the
// mean over tokens and not over ranks.
#include "20_transformer/translation_training.hpp"
#include "tests/bench/20_transformer/uneven_tokens.hpp"

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "20_transformer/words/numerals.hpp"
#include "common/report/options.hpp"
#if !defined(DDP_CUDA)
#include "cuda_on_cpu/observe.hpp"
#endif
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int steps = 16;

TranslationPlan small_plan(const std::filesystem::path& folder = {}) {
    TranslationPlan plan;
    plan.model = {
        .width = 16, .heads = 2, .layers = 1, .feed_forward = 32, .longest = 40, .dropout = 0.2};
    plan.vocabulary = 300;
    plan.epochs = 2;
    plan.batch = 12;
    plan.learning_rate = 0.003;
    plan.warm_up = 5;
    plan.smoothing = 0.1;
    plan.checkpoints = {.folder = folder, .every = 4};
    return plan;
}

struct Trained {
    TranslationResult result;
    // All but the biases of keys. Softmax does not feel these: their gradient is zero but for its
    // roundings, and Adam makes steps of full length of whatever there is.
    std::vector<float> parameters;
    std::vector<double> losses;
    int steps_before = 0;
};

// Trains with threads, and returns what rank 0 has. `stop_at`: a step at which all ranks fail.
Trained train(int ranks, const TranslationPlan& plan, int stop_at = 0) {
    World world(thread_options(ranks));
    const TranslationData data = encode_corpus(world, numeral_corpus(101, 15, 5, 1), plan);
    Trained trained;
    const auto work = [&](Rank& rank) {
        const bool is_first = rank.rank() == 0;
        const TranslationHooks hooks{.on_start =
                                         [&](int before) {
                                             if (is_first)
                                                 trained.steps_before = before;
                                         },
                                     .on_step =
                                         [&](const StepReport& report) {
                                             if (is_first)
                                                 trained.losses.push_back(report.loss);
                                             if (report.step == stop_at)
                                                 throw std::runtime_error("stopped by the test");
                                         }};
        const TranslationResult result =
            train_translation(rank, data, plan, hooks, [&](TranslationModel& model) {
                if (is_first)
                    for (const auto& parameter : model.parameters())
                        if (!parameter->name.ends_with("key.bias"))
                            for (const float value : parameter->value.to_host())
                                trained.parameters.push_back(value);
            });
        if (is_first)
            trained.result = result;
    };
    if (stop_at == 0)
        world.run(work);
    else
        REQUIRE(has(failure_of(world, work), "stopped by the test"));
    return trained;
}

// How far the parameters are from those of `right`, as a share of these.
double distance(const Trained& trained, const Trained& right) {
    REQUIRE(trained.parameters.size() == right.parameters.size());
    double difference = 0, whole = 0;
    for (std::size_t i = 0; i < right.parameters.size(); i++) {
        difference += std::pow(trained.parameters[i] - right.parameters[i], 2);
        whole += std::pow(right.parameters[i], 2);
    }
    return std::sqrt(difference / whole);
}

}  // namespace

TEST_CASE("translation: the learning rate grows, and then falls with the root of the step") {
    REQUIRE(learning_rate_at(1, 0.004, 4) == 0.001);
    REQUIRE(learning_rate_at(4, 0.004, 4) == 0.004);
    REQUIRE(learning_rate_at(16, 0.004, 4) == 0.002);
}

TEST_CASE("translation: one to eight ranks learn the same, with dropout and uneven shares",
          "[as_one]") {
    const Trained alone = train(1, small_plan());
    REQUIRE(alone.result.steps == steps);
    REQUIRE(alone.losses.size() == 3);  // after step 10, and at the ends of the epochs
    for (const int ranks : {2, 3, 4, 8}) {
        CAPTURE(ranks);
        const Trained together = train(ranks, small_plan());
        REQUIRE(together.result.steps == steps);
        REQUIRE(together.result.tokens == alone.result.tokens);
        REQUIRE(distance(together, alone) < 1e-4);
        REQUIRE(together.result.validation_loss ==
                Approx(alone.result.validation_loss).epsilon(1e-4));
        for (std::size_t i = 0; i < alone.losses.size(); i++)
            REQUIRE(together.losses[i] == Approx(alone.losses[i]).epsilon(1e-4));
    }
}

#if !defined(DDP_CUDA)  // a GPU's driver does not count them
TEST_CASE("translation: no step copies from memory that is not pinned") {
    TranslationPlan plan = small_plan();
    plan.report_every = 1;
    const auto uploads_in_steps = [&](int ranks) {
        World world(thread_options(ranks));
        const TranslationData data = encode_corpus(world, numeral_corpus(101, 15, 5, 1), plan);
        std::atomic<std::uint64_t> first = 0, last = 0;
        world.run([&](Rank& rank) {
            train_translation(rank, data, plan,
                              {.on_step =
                                   [&](const StepReport& report) {
                                       (report.step == 1 ? first : last) =
                                           cuda_on_cpu::pageable_uploads();
                                   }},
                              {});
        });
        return last - first;
    };
    REQUIRE(uploads_in_steps(1) == 0);
    REQUIRE(uploads_in_steps(2) == 0);
}
#endif

TEST_CASE("translation: two and three ranks learn the same without an encoder, and say so") {
    const TemporaryFolder folder;
    TranslationPlan plan = small_plan(folder.path());
    plan.model.decoder_only = true;
    const Trained alone = train(1, plan);
    REQUIRE(alone.result.steps == steps);
    plan.checkpoints.folder.clear();
    for (const int ranks : {2, 3})
        REQUIRE(distance(train(ranks, plan), alone) < 1e-4);
    // Its checkpoint is of no use to the other model, and the other way round.
    const auto failure_with = [&](const TranslationPlan& other) {
        World world(thread_options(2));
        const TranslationData data = encode_corpus(world, numeral_corpus(101, 15, 5, 1), other);
        return failure_of(world, [&](Rank& rank) { train_translation(rank, data, other, {}, {}); });
    };
    REQUIRE(has(failure_with(small_plan(folder.path())),
                "whose model was decoder only, and now it is encoder and decoder"));
    const TemporaryFolder both;
    train(1, small_plan(both.path()));
    plan.checkpoints.folder = both.path();
    REQUIRE(
        has(failure_with(plan), "whose model was encoder and decoder, and now it is decoder only"));
}

TEST_CASE("translation: divided by its own tokens, a rank's loss is another one") {
    TranslationPlan wrong = small_plan();
    wrong.divisor = Divisor::own_tokens;
    REQUIRE(distance(train(4, wrong), train(1, small_plan())) > 1e-3);
}

TEST_CASE("translation: the mean of means is not the gradient of the whole batch") {
    for (const int ranks : {2, 3, 5}) {
        World world(thread_options(ranks));
        const TranslationData data =
            encode_corpus(world, numeral_corpus(101, 15, 5, 1), small_plan());
        UnevenTokens found;
        world.run([&](Rank& rank) {
            const UnevenTokens mine = uneven_tokens(rank, data, small_plan());
            if (rank.rank() == 0)
                found = mine;
        });
        CAPTURE(ranks);
        REQUIRE(static_cast<int>(found.tokens.size()) == ranks);
        REQUIRE(found.by_own_tokens > 1e-3);
        REQUIRE(found.by_all_tokens < 1e-5);
    }
}

TEST_CASE("translation: two batches in a step, of which the first sends nothing") {
    TranslationPlan plan = small_plan();
    plan.accumulate = 3;  // 8 batches an epoch: steps of 3, 3 and 2
    const Trained alone = train(1, plan);
    REQUIRE(alone.result.steps == 6);
    REQUIRE(distance(train(3, plan), alone) < 1e-4);
}

TEST_CASE("translation: interrupted, it ends with the bits of a training that was not") {
    const TemporaryFolder whole, halves;
    const Trained right = train(4, small_plan(whole.path()));
    for (const auto& [ranks, is_same] : {std::pair{4, true}, std::pair{2, false}}) {
        CAPTURE(ranks);
        train(4, small_plan(halves.path()), 10);
        const Trained resumed = train(ranks, small_plan(halves.path()));
        REQUIRE((resumed.steps_before == 4 || resumed.steps_before == 8));
        REQUIRE(resumed.result.steps == steps);
        REQUIRE((resumed.result.hash == right.result.hash) == is_same);
        // The global batches are the same with fewer ranks; only the order of sums is not.
        REQUIRE(distance(resumed, right) < 1e-4);
        std::filesystem::remove_all(halves.path());
        std::filesystem::create_directory(halves.path());
    }
}

TEST_CASE("translation: a checkpoint of another training, and one that is over") {
    const TemporaryFolder folder;
    const Trained first = train(2, small_plan(folder.path()));
    const Trained again = train(3, small_plan(folder.path()));
    REQUIRE(again.steps_before == steps);
    REQUIRE(again.result.hash == first.result.hash);
    TranslationPlan other = small_plan(folder.path());
    other.model.heads = 4;
    World world(thread_options(2));
    const TranslationData data = encode_corpus(world, numeral_corpus(101, 15, 5, 1), other);
    const std::string failure =
        failure_of(world, [&](Rank& rank) { train_translation(rank, data, other, {}, {}); });
    REQUIRE(has(failure, "heads was 2, and now it is 4"));
}

TEST_CASE("translation: sentences are missing, or too few for the ranks") {
    World world(thread_options(3));
    TranslationPlan plan = small_plan();
    plan.batch = 200;
    REQUIRE_THROWS_WITH(encode_corpus(world, numeral_corpus(101, 15, 5, 1), plan),
                        "The training split has 101 pairs that are short enough, and 200 are "
                        "needed: take a smaller --batch, fewer ranks, or more sentences.");
    plan.batch = 12;
    plan.model.longest = 4;
    REQUIRE_THROWS_AS(encode_corpus(world, numeral_corpus(101, 15, 5, 1), plan), OptionError);
}

}  // namespace ddp::test
