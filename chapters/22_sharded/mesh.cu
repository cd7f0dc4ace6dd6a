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

#include "10_nodes/placement.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Divides as an all-reduce does: by the number, and not by a multiplication with its inverse.
__global__ void divide_by(std::size_t n, const float* sums, float ranks, float* means) {
    for (std::size_t i : grid_range(n))
        means[i] = sums[i] / ranks;
}

}  // namespace

// A rail's memory is not the node's: the sums go there and come back.
void Mesh::reduce_scatter(const float* whole, float* own, std::size_t count, ReduceOp op,
                          Stream& stream, const std::string& name) {
    if (rail_ == nullptr)
        return node_.reduce_scatter(whole, own, count, op, stream, name);
    for_each_part(count, [&](std::size_t of_own, std::size_t of_whole, std::size_t part) {
        node_.reduce_scatter(whole + of_whole, own + of_own, part, ReduceOp::sum, stream, name);
    });
    float* sums = on_rail_.data();
    DDP_CHECK(cudaMemcpyAsync(sums, own, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    rail_->all_reduce(sums, sums, count, ReduceOp::sum, stream, name + " between nodes");
    launch(stream, grid_for(count), divide_by, count, sums,
           static_cast<float>(world_size() * nodes()), own);
}

// The parts of all nodes' chunks, from where they lie in the whole array.
void Mesh::copy_own(const float* whole, float* own, std::size_t count, Stream& stream) const {
    for_each_part(count, [&](std::size_t of_own, std::size_t of_whole, std::size_t part) {
        const float* from = whole + of_whole + static_cast<std::size_t>(index()) * part;
        DDP_CHECK(cudaMemcpyAsync(own + of_own, from, part * sizeof(float),
                                  cudaMemcpyDeviceToDevice, stream));
    });
}

// First along the rails, from the first node to the others; then within each node.
void Mesh::copy_from_rank_0(Device& device, const Module& model) {
    if (rail_ != nullptr)
        ddp::copy_from_rank_0(*rail_, device, model);
    ddp::copy_from_rank_0(node_, device, model);
}

void Mesh::synchronize(Stream& stream) {
    node_.synchronize(stream);
    if (rail_ != nullptr)
        rail_->synchronize(stream);
}

// Rank l of every node is on rail l.
HybridMesh make_hybrid_mesh(Rank& rank, const std::optional<NodeShape>& shape,
                            std::size_t arena_bytes, std::size_t most) {
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), shape);
    if (!placement.is_even())
        throw OptionError("A hybrid takes nodes with the same number of ranks, and these are " +
                          placement.text() + ": start as many on each.");
    std::vector<int> node, rail;
    for (int l = 0; l < placement.sizes[0]; l++)
        node.push_back(placement.further(l - placement.local_rank()));
    for (int n = 0; n < placement.nodes(); n++)
        rail.push_back(placement.on_rail(n - placement.node()));
    auto on_node = make_native_communicator(rank, arena_bytes, {.group = Group(node)});
    auto on_rail = make_communicator("native", rank, 2 * most * sizeof(float) + arena_bytes,
                                     {.group = Group(rail)});
    Mesh mesh(*on_node, *on_rail, most);
    return {std::move(on_node), std::move(on_rail), std::move(mesh)};
}

}  // namespace ddp
