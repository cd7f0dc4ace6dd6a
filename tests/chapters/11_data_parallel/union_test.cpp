// Several ranks, each with its share of the samples, learn what one rank learns from all of them,
// and the equivalence check notices mistakes.
#include "03_network/cross_entropy.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

double compute_gradients(Module& model, const Batch& batch, Tape& tape) {
    const Variable loss = cross_entropy(model.forward(tape.constant(batch.images)), batch.labels);
    tape.backward(loss);
    return loss.value().to_host()[0];
}

class Naive : public Strategy {
  public:
    Naive(Communicator& communicator, Device& device, Module& model)
        : model_(model), ddp_(communicator, device, model) {}
    double learn(const Batch& batch, Tape& tape) override {
        const double loss = compute_gradients(model_, batch, tape);
        ddp_.average_gradients();
        return loss;
    }

  private:
    Module& model_;
    NaiveDdp ddp_;
};

std::unique_ptr<Strategy> make_naive(Communicator& communicator, Device& device, Module& model) {
    return std::make_unique<Naive>(communicator, device, model);
}

// Naive data parallel training with one mistake.
struct Mistake {
    std::string name;
    bool copies = true;
    bool reduces = true;
    ReduceOp op = ReduceOp::average;
    std::string expected;  // occurs in the check's message
};

class Mistaken : public Strategy {
  public:
    Mistaken(Communicator& communicator, Device& device, Module& model, const Mistake& mistake)
        : communicator_(communicator),
          device_(device),
          model_(model),
          mistake_(mistake),
          transferred_(communicator.allocate<float>(10'000)) {
        if (mistake.copies)
            copy_from_rank_0(communicator, device, model);
    }
    double learn(const Batch& batch, Tape& tape) override {
        const double loss = compute_gradients(model_, batch, tape);
        for (const auto& parameter : model_.parameters())
            if (mistake_.reduces)
                reduce(parameter->gradient_for_writing());
        return loss;
    }

  private:
    void reduce(Tensor& gradient) {
        Tensor transferred(device_, gradient.shape(), transferred_.share());
        DDP_CHECK(cudaMemcpyAsync(transferred.data(), gradient.data(), gradient.bytes(),
                                  cudaMemcpyDeviceToDevice, device_.stream()));
        communicator_.all_reduce(transferred.data(), transferred.data(), gradient.size(),
                                 mistake_.op, device_.stream());
        DDP_CHECK(cudaMemcpyAsync(gradient.data(), transferred.data(), gradient.bytes(),
                                  cudaMemcpyDeviceToDevice, device_.stream()));
    }

    Communicator& communicator_;
    Device& device_;
    Module& model_;
    const Mistake mistake_;
    ArenaBuffer<float> transferred_;
};

}  // namespace

TEST_CASE("naive: one to four ranks learn what one rank learns from all samples") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        for (const Network& network : networks()) {
            CAPTURE(ranks, network.name);
            REQUIRE(difference_from_one_rank(world, network.make, make_naive) == "");
        }
    }
}

TEST_CASE("naive: every mistake is noticed") {
    const std::vector<Mistake> mistakes{
        {"none", true, true, ReduceOp::average, ""},
        {"does not copy at the beginning", false, true, ReduceOp::average, "and on one rank"},
        {"sums, and forgets to divide", true, true, ReduceOp::sum, "and on one rank"},
        {"takes the largest", true, true, ReduceOp::maximum, "and on one rank"},
        {"does not reduce", true, false, ReduceOp::average, "and on one rank"},
    };
    for (const int ranks : {2, 3}) {
        World world(thread_options(ranks));
        for (const Mistake& mistake : mistakes) {
            CAPTURE(ranks, mistake.name);
            const std::string found = difference_from_one_rank(
                world, make_small_mlp,
                [&](Communicator& communicator, Device& device, Module& model) {
                    return std::make_unique<Mistaken>(communicator, device, model, mistake);
                });
            CAPTURE(found);
            REQUIRE(found.empty() == mistake.expected.empty());
            REQUIRE(has(found, mistake.expected));
        }
    }
}

TEST_CASE("naive: fifty steps on several ranks follow PyTorch's curve on the union") {
    for (const int ranks : {1, 2, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(difference_from_pytorch(world, make_naive) == "");
    }
}

}  // namespace ddp::test
