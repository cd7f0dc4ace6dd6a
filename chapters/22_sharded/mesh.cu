// The sum of chunk 4 of six, on two nodes of three ranks. The rank of the node begins that comes
// after the owner, and so does the node:
//
//     node 0, within     r2 + r0 + r1 -> rank 1
//     node 1, within     r5 + r3 + r4 -> rank 4
//     rail 1, between    node 0 + node 1          chunk 4 is the rail's second: node 1 has it last
//     then               / 6                      once, on the whole sum
//
// An all-reduce on two levels takes the same additions.
#include "22_sharded/mesh.hpp"

#include <algorithm>
#include <stdexcept>

#include "10_nodes/placement.hpp"
#include "22_sharded/sharded.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Divides as an all-reduce does: by the number, and not by a multiplication with its inverse.
__global__ void divide_by(std::size_t n, const float* sums, float ranks, float* means) {
    for (std::size_t i : grid_range(n))
        means[i] = sums[i] / ranks;
}

__global__ void add_to(std::size_t n, const float* summands, float* sums) {
    for (std::size_t i : grid_range(n))
        sums[i] += summands[i];
}

}  // namespace

// A rail's memory is not the node's: the sums go there and come back.
void Mesh::reduce_scatter(float* whole, float* own, std::size_t count, bool adds, Stream& stream,
                          const std::string& name) {
    if (rail_ == nullptr) {
        float* mean = adds ? whole + static_cast<std::size_t>(index()) * count : own;
        node_.reduce_scatter(whole, mean, count, ReduceOp::average, stream, name);
        if (adds)
            launch(stream, grid_for(count), add_to, count, mean, own);
        return;
    }
    if (adds)
        throw std::logic_error("a hybrid adds up the gradients of several batches by no_sync");
    for_each_part(count, [&](std::size_t of_own, std::size_t of_whole, std::size_t part) {
        node_.reduce_scatter(whole + of_whole, own + of_own, part, ReduceOp::sum, stream, name);
    });
    float* sums = on_rail_.data();
    DDP_CHECK(cudaMemcpyAsync(sums, own, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    rail_->all_reduce(sums, sums, count, ReduceOp::sum, stream, name + " between nodes");
    launch(stream, grid_for(count), divide_by, count, sums,
           static_cast<float>(world_size() * nodes()), own);
}

void Mesh::load_kernels(Stream& stream) {
    launch(stream, grid_for(1), divide_by, std::size_t{0}, nullptr, 1.0f, nullptr);
    launch(stream, grid_for(1), add_to, std::size_t{0}, nullptr, nullptr);
}

// The parts of all nodes' chunks, from where they lie in the whole array; then along the rail.
void Mesh::copy_own(const float* whole, float* own, std::size_t count, Stream& stream,
                    const std::string& name) {
    const auto copy = [&](float* to, const float* from, std::size_t elements) {
        DDP_CHECK(
            cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    };
    for_each_part(count, [&](std::size_t of_own, std::size_t of_whole, std::size_t part) {
        copy(own + of_own, whole + of_whole + static_cast<std::size_t>(index()) * part, part);
    });
    if (rail_ == nullptr)
        return;
    copy(on_rail_.data(), own, count);
    rail_->broadcast(on_rail_.data(), count, 0, stream, name + " between nodes");
    rail_->synchronize(stream);
    copy(own, on_rail_.data(), count);
}

// First along the rails, from the first node to the others; then within each node.
void Mesh::copy_from_rank_0(Device& device, const Module& model) {
    if (rail_ != nullptr)
        copy_from_rank(0, *rail_, device, model);
    copy_from_rank(0, node_, device, model);
}

void Mesh::synchronize(Stream& stream) {
    node_.synchronize(stream);
    if (rail_ != nullptr)
        rail_->synchronize(stream);
}

// Rank l of every node is on rail l.
HybridMesh make_hybrid_mesh(Rank& rank, const std::optional<NodeShape>& shape, const Blocks& blocks,
                            const ShardOptions& options) {
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), shape);
    if (!placement.is_even())
        throw OptionError("A hybrid takes nodes with the same number of ranks, and these are " +
                          placement.text() + ": start as many on each.");
    std::vector<int> node, rail;
    for (int l = 0; l < placement.sizes[0]; l++)
        node.push_back(placement.ahead(l - placement.local_rank()));
    for (int n = 0; n < placement.nodes(); n++)
        rail.push_back(placement.on_rail(n - placement.node()));
    const int ranks = placement.sizes[0], nodes = placement.nodes();
    std::size_t most = 0;
    for (const Unit& unit : units_of(blocks, ranks, nodes).units)
        most = std::max(most, unit.chunk);
    const std::size_t on_rails = most + Rest(blocks.model).elements();
    auto on_node = make_native_communicator(
        rank, ShardedDataParallel::arena_bytes(blocks, ranks, 3, options, nodes),
        {.group = Group(node)});
    auto on_rail = make_communicator(
        "native", rank, on_rails * sizeof(float) + 2 * SharedArena::unit, {.group = Group(rail)});
    Mesh mesh(*on_node, *on_rail, most);
    return {std::move(on_node), std::move(on_rail), std::move(mesh)};
}

}  // namespace ddp
