// Several ranks, each with its share of the samples, learn what one rank learns from all of them,
// with any buckets, and the equivalence check notices mistakes.
#include "03_network/cross_entropy.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

class Overlapping : public Strategy {
  public:
    Overlapping(Communicator& communicator, Device& device, Module& model,
                const DdpOptions& options = {})
        : ddp_(communicator, device, model, options) {
        // Half of the ranks compute their gradients in another order.
        if (auto* branches = dynamic_cast<Branches*>(&model))
            branches->b_comes_first = communicator.rank().rank() % 2 == 1;
    }
    double learn(const Batch& batch, Tape& tape) override {
        const Variable loss =
            cross_entropy(ddp_.forward(tape.constant(batch.images)), batch.labels);
        ddp_.backward(loss);
        return loss.value().to_host()[0];
    }
    DistributedDataParallel& ddp() { return ddp_; }

  private:
    DistributedDataParallel ddp_;
};

MakeStrategy overlapping(const DdpOptions& options = {}) {
    return [options](Communicator& communicator, Device& device, Module& model) {
        return std::make_unique<Overlapping>(communicator, device, model, options);
    };
}

class Naive : public Strategy {
  public:
    Naive(Communicator& communicator, Device& device, Module& model)
        : model_(model), ddp_(communicator, device, model) {}
    double learn(const Batch& batch, Tape& tape) override {
        const Variable loss =
            cross_entropy(model_.forward(tape.constant(batch.images)), batch.labels);
        tape.backward(loss);
        ddp_.average_gradients();
        return loss.value().to_host()[0];
    }

  private:
    Module& model_;
    NaiveDdp ddp_;
};

template <class T>
MakeStrategy way_of() {
    return [](Communicator& communicator, Device& device, Module& model) {
        return std::make_unique<T>(communicator, device, model);
    };
}

MakeStrategy with_hook(const DdpOptions& options,
                       const std::function<BucketHook(Rank&)>& make_hook) {
    return [=](Communicator& communicator, Device& device, Module& model) {
        auto strategy = std::make_unique<Overlapping>(communicator, device, model, options);
        strategy->ddp().set_bucket_hook(make_hook(communicator.rank()));
        return strategy;
    };
}

// The parameters' bits after each of six steps.
std::vector<std::uint64_t> hashes(World& world, const MakeModel& make_model,
                                  const MakeStrategy& make_strategy) {
    std::vector<std::uint64_t> found;
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(7);
        const auto model = make_model(device, random);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto strategy = make_strategy(*communicator, device, *model);
        Sgd optimizer(model->parameters(), 0.1);
        rank.barrier();
        for (int step = 0; step < 6; step++) {
            Tape tape(device);
            strategy->learn(batch_of(device, part_of(12 * step, 12 * step + 12, rank.rank(),
                                                     rank.world_size())),
                            tape);
            optimizer.step();
            optimizer.zero_gradients();
            const std::uint64_t hash = hash_of(model->parameters());
            if (rank.rank() == 0)
                found.push_back(hash);
        }
        require_equal_replicas(rank, model->parameters());
    });
    return found;
}

}  // namespace

TEST_CASE("ddp: one to four ranks learn what one rank learns from all samples") {
    std::vector<Network> all = networks();
    all.push_back({"branches", make_branches});
    all.push_back({"in evaluation", [](Device& device, Random& random) {
                       auto model = make_normed(device, random);
                       model->set_training(false);  // fine-tuned with frozen statistics
                       return model;
                   }});
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        for (const Network& network : all) {
            CAPTURE(ranks, network.name);
            REQUIRE(difference_from_one_rank(world, network.make, overlapping()) == "");
        }
    }
}

TEST_CASE("ddp: with any buckets, with overlap and without") {
    for (const int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        for (const std::size_t cap : {std::size_t{0}, std::size_t{700}, default_bucket_bytes})
            for (const bool overlap : {true, false}) {
                CAPTURE(ranks, cap, overlap);
                for (const MakeModel& model : {networks()[3].make, MakeModel(make_branches)})
                    REQUIRE(difference_from_one_rank(world, model,
                                                     overlapping({cap, overlap, overlap})) == "");
            }
    }
}

TEST_CASE("ddp: fifty steps on several ranks follow PyTorch's curve on the union") {
    for (const int ranks : {1, 2, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(difference_from_pytorch(world, overlapping({.bucket_cap_bytes = 4096})) == "");
    }
}

TEST_CASE("ddp: overlap does not change a bit, nor does training twice") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        for (const std::size_t cap : {std::size_t{300}, default_bucket_bytes}) {
            CAPTURE(ranks, cap);
            const auto on = hashes(world, make_small_mlp, overlapping({cap, true}));
            REQUIRE(on == hashes(world, make_small_mlp, overlapping({cap, false})));
            REQUIRE(on == hashes(world, make_small_mlp, overlapping({cap, true})));
        }
    }
}

// The order of a sum depends on the place of a number in its bucket: with three ranks and more, the
// bits depend on the buckets, as in PyTorch. Two numbers have one sum.
TEST_CASE("ddp: on one and two ranks the bits are those of naive data parallel training") {
    for (const int ranks : {1, 2}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        for (const Network& network : networks()) {
            CAPTURE(network.name);
            REQUIRE(hashes(world, network.make, overlapping({.bucket_cap_bytes = 300})) ==
                    hashes(world, network.make, way_of<Naive>()));
        }
    }
}

TEST_CASE("ddp: every mistake is noticed") {
    const auto sum = [](Rank&) -> BucketHook {
        return [](Communicator& communicator, Tensor bucket, Stream& stream, const std::string&) {
            communicator.all_reduce(bucket.data(), bucket.data(), bucket.size(), ReduceOp::sum,
                                    stream);
        };
    };
    const auto nothing = [](Rank&) -> BucketHook {
        return [](Communicator&, Tensor, Stream&, const std::string&) {};
    };
    // The last rank sends two buckets in the wrong order.
    const auto swapped = [](Rank& rank) -> BucketHook {
        if (rank.rank() + 1 < rank.world_size())
            return average_bucket;
        return [kept = Tensor()](Communicator& communicator, Tensor bucket, Stream& stream,
                                 const std::string& name) mutable {
            if (name == "bucket 1") {
                kept = bucket;
                return;
            }
            average_bucket(communicator, bucket, stream, name);
            if (name == "bucket 2")
                average_bucket(communicator, kept, stream, name);
        };
    };
    const DdpOptions small{.bucket_cap_bytes = 0};
    const std::string other = "and on one rank", order = "all ranks must do the same";
    for (const int ranks : {2, 3}) {
        World world(thread_options(ranks));
        const auto check = [&](const MakeStrategy& make) {
            return difference_from_one_rank(world, make_branches, make);
        };
        CAPTURE(ranks);
        REQUIRE(check(with_hook(small, [](Rank&) -> BucketHook { return average_bucket; })) == "");
        REQUIRE(has(check(with_hook(small, sum)), other));
        REQUIRE(has(check(with_hook(small, nothing)), other));
        REQUIRE(has(check(with_hook(small, swapped)), order));
    }
}

}  // namespace ddp::test
