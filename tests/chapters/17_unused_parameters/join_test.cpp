// join: ranks with fewer batches shadow those that have more, and all end with the same model.
#include "03_network/cross_entropy.hpp"
#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/17_unused_parameters/paths.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

// A Walker within a join.
struct Joiner : Walker {
    Joiner(Rank& rank, const JoinOptions& options = {}, Search search = Search::none)
        : Walker(rank, search, 300), join(*communicator, device, model, ddp, options) {
        join.plug_into(hooks);
        ddp.set_hooks(hooks);
    }
    void step_optimizer() {
        optimizer.step();
        optimizer.zero_gradients();
    }
    Join join;
};

// Returns how many batches rank r has.
int batches_of(int rank) {
    const int batches[] = {4, 2, 4, 0};
    return batches[rank];
}

}  // namespace

TEST_CASE("join: the gradients are the sum over the ranks that have data, by hand") {
    for (const bool divide_by_all : {true, false})
        for (const int ranks : {2, 3, 4}) {
            World world(thread_options(ranks));
            constexpr int steps = 4;
            const auto places = static_cast<std::size_t>(ranks);
            // [step][rank]: the gradient of a bias before and after it is reduced.
            std::vector<std::vector<Values>> own(steps, std::vector<Values>(places)), reduced = own;
            world.run([&](Rank& rank) {
                const auto place = static_cast<std::size_t>(rank.rank());
                Joiner joiner(rank, {.divide_by_initial_world_size = divide_by_all});
                std::size_t step = 0;
                for (; step < static_cast<std::size_t>(batches_of(rank.rank())); step++) {
                    const Variable loss = joiner.forward("abc", static_cast<int>(step));
                    joiner.ddp.backward(loss, [&](Parameter& parameter) {
                        if (parameter.name == "b.bias")
                            own[step][place] = parameter.gradient().to_host();
                    });
                    joiner.synchronize();
                    reduced[step][place] = joiner.gradient("b.bias");
                    joiner.step_optimizer();
                    joiner.tape.clear();
                }
                joiner.join.shadow_others([&] {
                    joiner.synchronize();
                    reduced[step++][place] = joiner.gradient("b.bias");
                    joiner.step_optimizer();
                });
                require_equal_replicas(rank, joiner.model.parameters());
            });
            for (std::size_t step = 0; step < steps; step++) {
                Values sum(7, 0);
                int active = 0;
                for (std::size_t rank = 0; rank < places; rank++) {
                    REQUIRE(own[step][rank].empty() ==
                            (static_cast<int>(step) >= batches_of(static_cast<int>(rank))));
                    for (std::size_t i = 0; i < own[step][rank].size(); i++)
                        sum[i] += own[step][rank][i];
                    active += !own[step][rank].empty();
                }
                const float divisor = static_cast<float>(divide_by_all ? ranks : active);
                CAPTURE(divide_by_all, ranks, step, active);
                for (std::size_t rank = 0; rank < places; rank++) {
                    REQUIRE(reduced[step][rank].size() == 7);
                    REQUIRE(reduced[step][rank] == reduced[step][0]);
                    for (std::size_t i = 0; i < 7; i++)
                        REQUIRE(reduced[step][rank][i] == Approx(sum[i] / divisor).margin(1e-8));
                }
            }
        }
}

TEST_CASE("join: unless the optimizer goes on, all ranks get the last one's model, and no more") {
    World world(thread_options(3));
    for (const bool goes_on : {true, false}) {
        std::vector<std::vector<Values>> learned(3);
        const auto train = [&](Rank& rank, bool has_second_epoch) {
            Joiner joiner(rank);
            const auto after_step = [&] { joiner.step_optimizer(); };
            for (int epoch = 0; epoch < (has_second_epoch ? 2 : 1); epoch++) {
                for (int step = 0; step < 4 - rank.rank(); step++)
                    joiner.step("abc", step);
                joiner.join.shadow_others(goes_on ? std::function<void()>(after_step) : nullptr);
            }
            for (const auto& parameter : joiner.model.parameters())
                learned[static_cast<std::size_t>(rank.rank())].push_back(
                    parameter->value.to_host());
            joiner.synchronize();
            // Within an epoch replicas may differ; at its end they do not.
            require_equal_replicas(rank, joiner.model.parameters());
            for (int step = 0; step < 2 && has_second_epoch; step++)
                joiner.step("abc", step);
            require_equal_replicas(rank, joiner.model.parameters());
        };
        CAPTURE(goes_on);
        REQUIRE(failure_of(world, [&](Rank& rank) { train(rank, false); }) == "");
        REQUIRE(learned[1] == learned[0]);
        REQUIRE(learned[2] == learned[0]);
        // A rank that stopped early keeps its old momentum, as in PyTorch.
        REQUIRE(has(failure_of(world, [&](Rank& rank) { train(rank, true); }),
                    "the replicas have drifted apart") == !goes_on);
    }
}

TEST_CASE("join: a map of what is used, no_sync and a rank without any batch") {
    World world(thread_options(3));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        Joiner joiner(rank, {}, Walker::Search::every_step);
        const Values before = joiner.parameter("c.weight").value.to_host();
        const auto learn = [&](int step) {
            {
                const auto no_sync = joiner.ddp.no_sync();
                joiner.backward("ab", step);
                joiner.tape.clear();
            }
            joiner.step("a", step + 1);
        };
        for (int step = 0; step < 2 * rank.rank(); step++)
            learn(step);
        joiner.join.shadow_others([&] { joiner.step_optimizer(); });
        require_equal_replicas(rank, joiner.model.parameters());
        if (joiner.parameter("c.weight").value.to_host() != before)
            throw std::runtime_error("what no rank has used was moved");
        joiner.synchronize();
    });
    REQUIRE(failure == "");
}

TEST_CASE("join: the highest rank with data gives the buffers, and its model in the end") {
    World world(thread_options(3));
    std::vector<Values> means(3);
    std::vector<int> last;
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(3);
        const auto model = networks()[2].make(device, random);  // with a BatchNorm
        model->set_training(true);
        const auto communicator = make_communicator(
            "native", rank, ddp_arena_bytes(*model) + join_arena_bytes(rank.world_size()));
        DistributedDataParallel ddp(*communicator, device, *model);
        Join join(*communicator, device, *model, ddp);
        DdpHooks hooks;
        join.plug_into(hooks);
        ddp.set_hooks(hooks);
        Tape tape(device);
        const int batches[] = {1, 3, 2};
        std::vector<int> mine;
        for (int step = 0; step < batches[rank.rank()]; step++) {
            const Batch batch = batch_of(device, {10 * rank.rank() + step, 5});
            ddp.backward(cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels));
            mine.push_back(join.last());
            tape.clear();
            for (const auto& parameter : model->parameters())
                parameter->clear_gradient();
        }
        join.shadow_others();
        mine.push_back(join.active());
        means[static_cast<std::size_t>(rank.rank())] = model->buffers()[0].value.to_host();
        if (rank.rank() == 1)
            last = mine;
    });
    REQUIRE(last == std::vector<int>{2, 2, 1, 0});
    REQUIRE(means[0] == means[1]);
    REQUIRE(means[2] == means[1]);
}

TEST_CASE("join: to end early, all ranks throw in the same step, and can go on together") {
    World world(thread_options(3));
    std::vector<int> steps(3);
    std::vector<std::string> said(3);
    const std::string failure = failure_of(world, [&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Joiner joiner(rank, {.throw_on_early_termination = true});
        for (int epoch = 0; epoch < 2; epoch++)
            try {
                for (int step = 0; step < (rank.rank() == 1 ? 2 : 4); step++) {
                    joiner.step("abc", step);
                    steps[place]++;
                }
                joiner.join.shadow_others();
            } catch (const InputsExhausted& end) {
                said[place] = end.what();
                joiner.clear();
            }
        joiner.synchronize();
        require_equal_replicas(rank, joiner.model.parameters());
    });
    REQUIRE(failure == "");
    REQUIRE(steps == std::vector<int>{4, 4, 4});
    for (const std::string& sentence : said)
        REQUIRE(sentence == "rank 1 has no batch left: all ranks end the epoch here");
}

TEST_CASE("join: even inputs end without an error, with early termination or without") {
    World world(thread_options(2));
    for (const bool throws : {true, false})
        REQUIRE(failure_of(world, [&](Rank& rank) {
                    Joiner joiner(rank, {.throw_on_early_termination = throws});
                    for (int step = 0; step < 3; step++)
                        joiner.step("abc", step);
                    joiner.join.shadow_others();
                    joiner.synchronize();
                }) == "");
}

}  // namespace ddp::test
