#include "tests/chapters/15_overlap/replica.hpp"

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/sequential.hpp"
#include "10_nodes/make_communicator.hpp"

namespace ddp::test {
namespace {

std::unique_ptr<Module> make(const MakeModel& make_model, Device& device, int rank) {
    Random random(20 + static_cast<std::uint64_t>(rank));
    return make_model(device, random);
}

}  // namespace

Branches::Branches(Device& device, Random& random)
    : Module("branches"),
      flatten_("flatten"),
      a_("a", device, 64, 5, random),
      b_("b", device, 64, 5, random),
      relu_("relu"),
      head_("head", device, 5, 10, random) {}

Variable Branches::forward(Variable input) {
    const Variable x = flatten_.forward(input);
    if (leaves_out_b)
        return head_.forward(a_.forward(x));
    if (b_comes_first) {
        const Variable b = relu_.forward(b_.forward(x));
        return head_.forward(add(a_.forward(x), b));
    }
    const Variable a = a_.forward(x);
    return head_.forward(add(a, relu_.forward(b_.forward(x))));
}

Parameters Branches::parameters() const {
    Parameters all;
    for (const Linear* layer : {&a_, &b_, &head_})
        for (const auto& parameter : layer->parameters())
            all.push_back(parameter);
    return all;
}

std::unique_ptr<Module> make_branches(Device& device, Random& random) {
    return std::make_unique<Branches>(device, random);
}

std::unique_ptr<Module> make_normed(Device& device, Random& random) {
    auto model = std::make_unique<Sequential>("normed");
    model->add<Conv2d>("conv", device, Conv2dShape{1, 3, 3}, random);
    model->add<BatchNorm2d>("norm", device, 3);
    model->add<Flatten>("flatten");
    model->add<Linear>("linear", device, 3 * 36, 10, random);
    return model;
}

Replica::Replica(Rank& rank, const MakeModel& make_model, const DdpOptions& options,
                 const std::optional<Group>& group)
    : rank(rank),
      device(make_run_scoped<Device>(rank, test_memory)),
      model(make(make_model, device, group ? group->index_of(rank.rank()) : rank.rank())),
      communicator(make_communicator("native", rank, ddp_arena_bytes(*model), {.group = group})),
      ddp(*communicator, device, *model, options),
      tape(device),
      samples_(1000 * communicator->index()) {
    ddp.set_bucket_hook(
        [this](Communicator& communicator, Tensor bucket, Stream& stream, const std::string& name) {
            sent.push_back({name, bucket.size()});
            average_bucket(communicator, bucket, stream, name);
        });
}

Variable Replica::forward() {
    const Batch batch = batch_of(device, {samples_, samples_ + 1});
    samples_ += 2;
    return cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels);
}

void Replica::clear() {
    for (const auto& parameter : model->parameters())
        parameter->clear_gradient();
    tape.clear();
}

void Replica::step() {
    ddp.backward(forward());
    clear();
}

Parameter& Replica::parameter(const std::string& name) {
    for (const auto& parameter : model->parameters())
        if (parameter->name == name)
            return *parameter;
    throw std::out_of_range("there is no parameter " + name);
}

std::vector<float> Replica::gradient(const std::string& name) {
    const Parameter& found = parameter(name);
    return found.has_gradient() ? found.gradient().to_host() : std::vector<float>();
}

}  // namespace ddp::test
