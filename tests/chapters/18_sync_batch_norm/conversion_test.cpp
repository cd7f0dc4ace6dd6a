// Whole models with SyncBatchNorm: a conversion keeps what it should, and several ranks learn what
// one rank learns from all samples.
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "15_overlap/ddp.hpp"
#include "18_sync_batch_norm/show/class_per_rank.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Two BatchNorms, one of them in a network within the network.
std::unique_ptr<Module> make_normed(Device& device, Random& random) {
    auto model = std::make_unique<Sequential>("normed");
    model->add<Conv2d>("conv1", device, Conv2dShape{1, 3, 3}, random);
    model->add<BatchNorm2d>("norm1", device, 3);
    auto& inner = model->add<Sequential>("inner");
    inner.add<Relu>("relu");
    inner.add<Conv2d>("inner.conv", device, Conv2dShape{3, 2, 3}, random);
    inner.add<BatchNorm2d>("inner.norm", device, 2);
    model->add<Flatten>("flatten");
    model->add<Linear>("linear", device, 2 * 16, 10, random);
    return model;
}

class WithDdp : public Strategy {
  public:
    WithDdp(Communicator& communicator, Device& device, Module& model, bool converts)
        : converted_(converts
                         ? convert_sync_batch_norm(dynamic_cast<Sequential&>(model), communicator)
                         : std::vector<SyncBatchNorm*>()),
          ddp_(communicator, device, model) {}
    double learn(const Batch& batch, Tape& tape) override {
        const Variable loss =
            cross_entropy(ddp_.forward(tape.constant(batch.images)), batch.labels);
        ddp_.backward(loss);
        return loss.value().to_host()[0];
    }

  private:
    const std::vector<SyncBatchNorm*> converted_;
    DistributedDataParallel ddp_;
};

MakeStrategy with_ddp(bool converts) {
    return [converts](Communicator& communicator, Device& device, Module& model) {
        return std::make_unique<WithDdp>(communicator, device, model, converts);
    };
}

void require(bool is_so, const std::string& what) {
    if (!is_so)
        throw std::runtime_error("not so: " + what);
}

}  // namespace

TEST_CASE("sync_batch_norm: with DDP, ranks learn what one rank learns from the union") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(difference_from_one_rank(world, make_normed, with_ddp(true), 1e-5) == "");
        const std::string plain =
            difference_from_one_rank(world, make_normed, with_ddp(false), 1e-5);
        REQUIRE(has(plain, "and on one rank") == (ranks > 1));
    }
}

TEST_CASE("sync_batch_norm: a conversion keeps parameters, buffers, what is frozen, and training") {
    World world(thread_options(2));
    REQUIRE(
        failure_of(world, [&](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, test_memory);
            Random random(1);
            const auto made = make_normed(device, random);
            auto& model = dynamic_cast<Sequential&>(*made);
            const auto communicator = make_communicator("native", rank, 1 << 20);
            const Parameters before = model.parameters();
            for (const auto& parameter : before)
                parameter->is_frozen = parameter->name == "inner.norm.weight";
            fill(model.buffers()[2].value, 7.0f);
            model.set_training(false);
            const auto norms = convert_sync_batch_norm(model, *communicator);
            require(norms.size() == 2, "two were converted");
            require(norms[0]->name() == "norm1" && norms[1]->name() == "inner.norm", "names");
            require(model.parameters() == before, "the very same parameters, in their order");
            for (const auto& parameter : model.parameters())
                require(parameter->is_frozen == (parameter->name == "inner.norm.weight"), "frozen");
            require(model.buffers().size() == 4, "four buffers");
            require(model.buffers()[2].name == "inner.norm.running_mean", "a buffer's name");
            require(model.buffers()[2].value.to_host() == std::vector<float>(2, 7.0f),
                    "a buffer's values");
            require(!norms[0]->is_training() && !norms[1]->is_training(), "in evaluation");
            model.set_training(true);
            require(norms[1]->is_training(), "in training");
            require(convert_sync_batch_norm(model, *communicator).empty(),
                    "there is nothing to convert twice");
            // A frozen parameter gets no gradient, and backward goes on.
            Tape tape(device);
            const Batch batch = batch_of(device, {2 * rank.rank(), 2 * rank.rank() + 1});
            tape.backward(cross_entropy(model.forward(tape.constant(batch.images)), batch.labels));
            communicator->synchronize(device.stream());
            for (const auto& parameter : before)
                require(parameter->has_gradient() != parameter->is_frozen, parameter->name);
        }) == "");
}

TEST_CASE("sync_batch_norm: the requested memory of the communicator is enough") {
    for (const int ranks : {1, 2, 5}) {
        World world(thread_options(ranks));
        REQUIRE(failure_of(world, [&](Rank& rank) {
                    auto& device = make_run_scoped<Device>(rank, test_memory);
                    Random random(1);
                    const auto model = make_shape_network(device, random);
                    const auto communicator = make_communicator(
                        "native", rank,
                        sync_batch_norm_arena_bytes(*model, rank.world_size()) + 4096);
                    convert_sync_batch_norm(*model, *communicator);
                }) == "");
    }
}

TEST_CASE("sync_batch_norm: every rank has classes of its own, with equally many pictures") {
    const LabelledImages images = make_shapes(100, 1);
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
        CAPTURE(ranks);
        std::vector<int> times(100);
        const std::size_t each = own_pictures(images, 0, ranks).size();
        REQUIRE(each >= static_cast<std::size_t>(ranks <= 2 ? 33 : 33 / ((ranks + 2) / 3)));
        for (int rank = 0; rank < ranks; rank++) {
            const std::vector<int> own = own_pictures(images, rank, ranks);
            REQUIRE(own.size() == each);
            for (const int i : own) {
                REQUIRE(++times[static_cast<std::size_t>(i)] == 1);
                if (ranks > 2)
                    REQUIRE(images.labels[static_cast<std::size_t>(i)] == rank % 3);
            }
        }
    }
    REQUIRE(own_classes(0, 1) == "cats and dogs and cars");
    REQUIRE(own_classes(0, 2) == "cats and cars");
    REQUIRE(own_classes(1, 2) == "dogs");
    REQUIRE(own_classes(2, 3) == "cars");
    REQUIRE(own_classes(4, 5) == "dogs");
}

}  // namespace ddp::test
