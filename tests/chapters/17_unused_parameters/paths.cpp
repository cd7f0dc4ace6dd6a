#include "tests/chapters/17_unused_parameters/paths.hpp"

#include <cmath>

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/support/worlds.hpp"

namespace ddp::test {
namespace {

constexpr std::uint64_t seed = 31;
constexpr double fixed_learning_rate = 0.1;

Batch batch_for(Device& device, int number, int rank) {
    const int first = 100 * rank + 3 * number;
    return batch_of(device, {first, first + 1, first + 2});
}

Paths make_paths(Device& device, int rank) {
    Random random(seed + static_cast<std::uint64_t>(rank));
    return Paths(device, random);
}

std::vector<std::vector<float>> state_of(const Module& model) {
    std::vector<std::vector<float>> state;
    for (const auto& parameter : model.parameters())
        state.push_back(parameter->value.to_host());
    return state;
}

}  // namespace

Paths::Paths(Device& device, Random& random)
    : Module("paths"),
      flatten_("flatten"),
      relu_("relu"),
      a_("a", device, 64, 5, random),
      b_("b", device, 64, 7, random),
      c_("c", device, 64, 7, random),
      tied_("tied", device, 7, 5, random),
      head_("head", device, 5, 10, random) {}

Variable Paths::forward(Variable input) {
    const Variable x = flatten_.forward(input);
    std::optional<Variable> sum;
    for (const char branch : branches) {
        const Variable y =
            branch == 'a'
                ? a_.forward(x)
                : tied_.forward(relu_.forward(branch == 'b' ? b_.forward(x) : c_.forward(x)));
        sum = sum ? add(*sum, y) : y;
    }
    before_head = *sum;
    return head_.forward(*sum);
}

Parameters Paths::parameters() const {
    Parameters all;
    for (const Linear* layer : {&a_, &b_, &c_, &tied_, &head_})
        for (const auto& parameter : layer->parameters())
            all.push_back(parameter);
    return all;
}

Walker::Walker(Rank& rank, Search search, std::size_t cap_bytes)
    : rank(rank),
      device(make_run_scoped<Device>(rank, test_memory)),
      model(make_paths(device, rank.rank())),
      communicator(make_communicator("native", rank,
                                     ddp_arena_bytes(model) + used_map_arena_bytes(model) +
                                         join_arena_bytes(rank.world_size()))),
      ddp(*communicator, device, model,
          {.bucket_cap_bytes = cap_bytes, .rebuild_buckets = search != Search::every_step}),
      optimizer(model.parameters(), fixed_learning_rate),
      tape(device) {
    if (search == Search::every_step)
        find_unused.emplace(*communicator, device, ddp).plug_into(hooks);
    if (search == Search::once)
        static_graph.emplace(*communicator, device, ddp).plug_into(hooks);
    ddp.set_hooks(hooks);
    ddp.set_bucket_hook(
        [this](Communicator& ranks, Tensor bucket, Stream& stream, const std::string& name) {
            sent.push_back(name);
            average_bucket(ranks, bucket, stream, name);
        });
    rank.barrier();
}

Variable Walker::forward(const std::string& branches, int number) {
    model.branches = branches;
    const Batch batch = batch_for(device, number, rank.rank());
    return cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels);
}

void Walker::backward(const std::string& branches, int number) {
    ddp.backward(forward(branches, number));
}

void Walker::clear() {
    optimizer.zero_gradients();
    tape.clear();
}

void Walker::step(const std::string& branches, int number) {
    backward(branches, number);
    optimizer.step();
    clear();
}

Parameter& Walker::parameter(const std::string& name) {
    for (const auto& parameter : model.parameters())
        if (parameter->name == name)
            return *parameter;
    throw std::out_of_range("there is no parameter " + name);
}

std::vector<float> Walker::gradient(const std::string& name) {
    const Parameter& found = parameter(name);
    return found.has_gradient() ? found.gradient().to_host() : std::vector<float>();
}

std::vector<std::vector<std::vector<float>>> walk_alone(int ranks, int steps,
                                                        const Branches& branches) {
    Device device(test_memory);
    Paths model = make_paths(device, 0);
    Sgd optimizer(model.parameters(), fixed_learning_rate);
    std::vector<std::vector<std::vector<float>>> states;
    for (int step = 0; step < steps; step++) {
        for (int rank = 0; rank < ranks; rank++) {
            if (branches(step, rank).empty())
                continue;
            Tape tape(device);
            model.branches = branches(step, rank);
            const Batch batch = batch_for(device, step, rank);
            const Variable logits = model.forward(tape.constant(batch.images));
            tape.backward(cross_entropy(logits, batch.labels), {}, 1 / static_cast<float>(ranks));
        }
        optimizer.step();
        optimizer.zero_gradients();
        states.push_back(state_of(model));
    }
    return states;
}

std::string difference_from_walking_alone(World& world, Walker::Search search, int steps,
                                          const Branches& branches) {
    const auto expected = walk_alone(world.world_size(), steps, branches);
    std::string found;
    const std::string failure = failure_of(world, [&](Rank& rank) {
        Walker walker(rank, search, 300);
        std::string mine;
        for (int step = 0; step < steps; step++) {
            walker.step(branches(step, rank.rank()), step);
            require_equal_replicas(rank, walker.model.parameters());
            const auto state = state_of(walker.model);
            const auto& right = expected[static_cast<std::size_t>(step)];
            for (std::size_t p = 0; p < state.size(); p++)
                for (std::size_t i = 0; i < state[p].size(); i++)
                    if (mine.empty() && !(std::abs(state[p][i] - right[p][i]) <= 2e-6))
                        mine = "step " + std::to_string(step) + ": " +
                               walker.model.parameters()[p]->name + "[" + std::to_string(i) +
                               "] is " + std::to_string(state[p][i]) + ", and alone " +
                               std::to_string(right[p][i]);
        }
        walker.synchronize();
        if (rank.rank() == 0)
            found = mine;
    });
    return failure.empty() ? found : failure;
}

}  // namespace ddp::test
