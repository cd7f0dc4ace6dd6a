#include "tests/bench/15_overlap/lessons.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int inputs = 16, width = 8, class_count = 4;
constexpr std::size_t device_bytes = 1 << 20, arena_bytes = 1 << 20;

// head(a(x) + relu(b(x))). Backward reaches the branch first that forward computes last.
class TwoBranches : public Module {
  public:
    TwoBranches(Device& device, Random& random, bool b_comes_first)
        : Module("branches"),
          a_("a", device, inputs, width, random, false),
          b_("b", device, inputs, width, random, false),
          head_("head", device, width, class_count, random),
          b_comes_first_(b_comes_first) {}

    Variable forward(Variable input) override {
        if (b_comes_first_) {
            const Variable b = relu_.forward(b_.forward(input));
            return head_.forward(add(a_.forward(input), b));
        }
        const Variable a = a_.forward(input);
        return head_.forward(add(a, relu_.forward(b_.forward(input))));
    }
    Parameters parameters() const override {
        Parameters all;
        for (const Linear* layer : {&a_, &b_, &head_})
            for (const auto& parameter : layer->parameters())
                all.push_back(parameter);
        return all;
    }

  private:
    Linear a_, b_, head_;
    Relu relu_{"relu"};
    const bool b_comes_first_;
};

// Returns a batch of two samples, with different numbers on every rank.
Tensor make_input(Device& device, int rank) {
    std::vector<float> values;
    for (int i = 0; i < 2 * inputs; i++)
        values.push_back(std::sin(static_cast<float>(i * (rank + 1))));
    return Tensor(device, {2, inputs}, values);
}

// Returns the mean over the ranks of a branch's gradient, by the exchange on the host.
std::vector<float> mean_gradient(Rank& rank, const std::vector<float>& mine) {
    std::array<float, std::size_t{inputs} * width> values{};
    std::ranges::copy(mine, values.begin());
    std::vector<float> mean(values.size());
    for (const auto& theirs : rank.all_gather(values))
        for (std::size_t i = 0; i < mean.size(); i++)
            mean[i] += theirs[i] / static_cast<float>(rank.world_size());
    return mean;
}

double relative_error(const std::vector<float>& found, const std::vector<float>& right) {
    double difference = 0, whole = 0;
    for (std::size_t i = 0; i < right.size(); i++) {
        difference += std::pow(found[i] - right[i], 2);
        whole += std::pow(right[i], 2);
    }
    return std::sqrt(difference / whole);
}

}  // namespace

double error_of_step(Rank& rank, SendingOrder order) {
    auto& device = make_run_scoped<Device>(rank, device_bytes);
    Random random(1);
    TwoBranches model(device, random, rank.rank() % 2 == 1);
    const auto communicator = make_communicator("native", rank, arena_bytes);
    DistributedDataParallel ddp(*communicator, device, model, {.bucket_cap_bytes = 0});
    Tape tape(device);
    const Tensor input = make_input(device, rank.rank());
    const Labels labels(device, {2}, std::vector<int>{rank.rank() % class_count, 1});
    rank.barrier();
    const auto loss_of = [&](Module& network) {
        return cross_entropy(network.forward(tape.constant(input)), labels);
    };
    tape.backward(loss_of(model));
    // a's gradient on this rank, before it is sent
    const std::vector<float> local = model.parameters()[0]->gradient().to_host();
    for (const auto& parameter : model.parameters())
        parameter->clear_gradient();

    if (order == SendingOrder::agreed)
        ddp.backward(cross_entropy(ddp.forward(tape.constant(input)), labels));
    else
        tape.backward(loss_of(model), [&](Parameter& ready) {
            const Tensor sent = ddp.gradients().view(ddp.gradients().index_of(ready));
            communicator->all_reduce(sent.data(), sent.data(), sent.size(), ReduceOp::average,
                                     device.stream(),
                                     order == SendingOrder::ready_by_name ? ready.name : "");
        });
    communicator->synchronize(device.stream());
    return relative_error(model.parameters()[0]->gradient().to_host(), mean_gradient(rank, local));
}

void show_sending_orders(World& world) {
    if (world.world_size() == 1)
        return;
    const bool prints = world.has_rank_0();
    const auto step = [&](SendingOrder order) {
        double error = 0;
        world.run([&](Rank& rank) {
            const double mine = error_of_step(rank, order);
            if (rank.rank() == 0)
                error = mine;
        });
        return error;
    };
    if (prints)
        std::cout << "Two branches, which odd ranks compute in the opposite order:\n";
    const double mixed = step(SendingOrder::ready);
    if (prints)
        std::cout << "  each gradient is sent as soon as it is ready: a's gradient is wrong by "
                  << format_percent(mixed) << ", without any error\n";
    try {
        step(SendingOrder::ready_by_name);
        throw std::logic_error("gradients that were sent out of order were not refused");
    } catch (const RunFailed& failure) {  // shown on purpose
        if (prints)
            std::cout << "  the same, and each call carries the gradient's name:\n    "
                      << failure.what() << "\n";
    }
    const double right = step(SendingOrder::agreed);
    if (prints)
        std::cout << "  buckets in an order on which all ranks agree: a's gradient is right to "
                  << (right < 1e-6 ? "the last digits" : format_percent(right)) << "\n\n";
}

}  // namespace ddp
