#include "14_buckets/show/reports.hpp"

#include <iostream>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/initialisers.hpp"
#include "03_network/models.hpp"
#include "14_buckets/flat_buffers.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

struct Network {
    std::string name;
    std::unique_ptr<Sequential> model;
    Tensor images;  // a batch of two, all 0: plans do not depend on what is in it
};

std::vector<Network> make_networks(Device& device, std::uint64_t seed) {
    Random random(seed);
    std::vector<Network> networks;
    for (const char* name : {"mlp", "cnn"})
        networks.push_back(
            {name, make_model(name, device, random), constant(device, {2, 1, 28, 28}, 0.0f)});
    const std::vector<int> widths(9, 512);
    networks.push_back({"eight layers of 512", make_mlp(device, random, widths),
                        constant(device, {2, 512}, 0.0f)});
    return networks;
}

// Runs one backward pass, and returns the gradients in the order in which they become ready.
std::vector<std::size_t> ready_order(Device& device, const Network& network,
                                     const FlatBuffers& buffers) {
    Tape tape(device);
    const Variable logits = network.model->forward(tape.constant(network.images));
    std::vector<std::size_t> order;
    tape.backward(cross_entropy(logits, Labels(device, {2}, std::vector<int>{0, 1})),
                  [&](Parameter& ready) { order.push_back(buffers.index_of(ready)); });
    return order;
}

void show_plan(const BucketPlan& plan, const std::string& iteration, Table& table) {
    for (std::size_t i = 0; i < plan.buckets.size(); i++) {
        const BucketPlan::Bucket& bucket = plan.buckets[i];
        const std::string& first = plan.gradients[bucket.gradients.front()].name;
        const std::string& last = plan.gradients[bucket.gradients.back()].name;
        table.row({iteration, std::to_string(i), std::to_string(bucket.gradients.size()), first,
                   last, format_bytes(static_cast<double>(bucket.bytes))});
    }
}

void write_plan(const std::string& network, int iteration, const BucketPlan& plan, CsvWriter& csv) {
    for (std::size_t k = 0; k < plan.buckets.size(); k++)
        for (const std::size_t i : plan.buckets[k].gradients)
            csv.row({network, iteration, k, plan.gradients[i].name, plan.gradients[i].bytes()});
}

void show_network(Device& device, const Network& network, std::optional<std::size_t> cap,
                  CsvWriter& csv) {
    const Parameters parameters = learned_parameters(network.model->parameters());
    const GradientSizes sizes = gradient_sizes(parameters);
    const BucketPlan first = first_plan(sizes);
    const auto memory = std::make_shared<Buffer<float>>(first.memory_bytes() / sizeof(float));
    FlatBuffers buffers(device, parameters, first, {memory, memory->data()}, memory->size());
    Table table(network.name, {"iteration", "bucket", "gradients", "from", "to", "bytes"});
    show_plan(first, "1", table);
    write_plan(network.name, 1, first, csv);
    buffers.arrange(rebuilt_plan(sizes, bucket_limits(cap), ready_order(device, network, buffers)));
    show_plan(buffers.plan(), "2", table);
    write_plan(network.name, 2, buffers.plan(), csv);
    std::cout << table << "\n";
}

}  // namespace

void show_plans(std::optional<std::size_t> cap_bytes, std::uint64_t seed,
                const std::filesystem::path& csv) {
    Device device;
    CsvWriter file(csv, {"network", "iteration", "bucket", "gradient", "bytes"});
    for (const Network& network : make_networks(device, seed))
        show_network(device, network, cap_bytes, file);
}

}  // namespace ddp
