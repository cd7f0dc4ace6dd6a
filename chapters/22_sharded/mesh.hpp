#pragma once
// The ranks as a mesh: the model is sharded within a node, and replicated between nodes. (Hybrid
// sharding; PyTorch's HSDP, on a DeviceMesh of two dimensions.) Two nodes of three ranks, and an
// array of six chunks:
//
//                 rail 0           rail 1           rail 2
//     node 0      rank 0: 0 3      rank 1: 1 4      rank 2: 2 5      one copy of the model
//     node 1      rank 3: 0 3      rank 4: 1 4      rank 5: 2 5      another one
//
//     gather      0 1 2, then 3 4 5, within the node                 nothing leaves it
//     reduce      0 1 2, then 3 4 5, within the node; then each rail adds up its two chunks
//
// The chunks are those of an all-reduce of all ranks on two levels, and so are the rails: so is the
// order of each sum, and the bits are those of DistributedDataParallel on the same nodes. That is
// why a rank's chunks do not lie side by side in the array, and each collective comes in parts.
#include <memory>
#include <string>

#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "22_sharded/blocks.hpp"

namespace ddp {

struct ShardOptions;  // sharded.hpp

// The collectives of a sharded training. They take what Communicator's take; `count` are the
// elements of this rank's chunks together.
class Mesh {
  public:
    // One node: all ranks of the communicator, which must outlive this object, share one model.
    Mesh(Communicator& node) : node_(node) {}
    // Several: `node` has the ranks of this node, `rail` those with this rank's place on all nodes.
    // `most` are the most elements of a call.
    Mesh(Communicator& node, Communicator& rail, std::size_t most)
        : node_(node), rail_(&rail), on_rail_(rail.allocate<float>(most)) {}

    Rank& rank() { return node_.rank(); }
    int world_size() const { return node_.world_size(); }  // that share one copy of the model
    int index() const { return node_.index(); }
    int nodes() const { return rail_ == nullptr ? 1 : rail_->world_size(); }
    void synchronize(Stream& stream);

    template <class T>
    ArenaBuffer<T> allocate(std::size_t size) {
        return node_.allocate<T>(size);
    }
    // Copies rank 0's model to all ranks of all nodes. The models must be known to be alike.
    void copy_from_rank_0(Device& device, const Module& model);
    // Copies an array from the first rank of a node to all of that node.
    void broadcast(float* whole, std::size_t count, Stream& stream, const std::string& name) {
        node_.broadcast(whole, count, 0, stream, name);
    }
    // Copies this rank's chunks out of a whole array: on all nodes, those that the first one has.
    void copy_own(const float* whole, float* own, std::size_t count, Stream& stream,
                  const std::string& name);

    template <class T>
    void all_gather(const T* own, T* whole, std::size_t count, Stream& stream,
                    const std::string& name) {
        for_each_part(count, [&](std::size_t of_own, std::size_t of_whole, std::size_t part) {
            node_.all_gather(own + of_own, whole + of_whole, part, stream, name);
        });
    }
    // The mean over all ranks of all nodes. If it `adds` to what is in `own`, this rank's chunk of
    // `whole` is overwritten; throws std::logic_error on several nodes, where it has several.
    void reduce_scatter(float* whole, float* own, std::size_t count, bool adds, Stream& stream,
                        const std::string& name);
    // Loads the kernels of that by launches on nothing: later a collective may be running.
    void load_kernels(Stream& stream);
    // The sum over the ranks of a node, which between them have the model once.
    void all_reduce(const double* input, double* output, std::size_t count, ReduceOp op,
                    Stream& stream, const std::string& name) {
        node_.all_reduce(input, output, count, op, stream, name);
    }

  private:
    // Calls `call` with the place of each part in this rank's chunks and in the whole array, in
    // elements, and with its size: a chunk. There is a part for each node.
    template <class Work>
    void for_each_part(std::size_t count, const Work& call) const {
        const std::size_t part = count / static_cast<std::size_t>(nodes());
        for (std::size_t begin = 0; begin < count; begin += part)
            call(begin, begin * static_cast<std::size_t>(world_size()), part);
    }

    Communicator& node_;
    Communicator* rail_ = nullptr;
    ArenaBuffer<float> on_rail_;  // rails take memory of their own
};

// The communicators of a mesh, and the mesh.
struct HybridMesh {
    std::unique_ptr<Communicator> node, rail;
    Mesh mesh;
};

// Makes those of this job's nodes, or of those that `shape` simulates, with the memory that stage 3
// of this model takes, with these options. All ranks call it together. Throws OptionError if the
// nodes do not have the same number of ranks.
HybridMesh make_hybrid_mesh(Rank& rank, const std::optional<NodeShape>& shape, const Blocks& blocks,
                            const ShardOptions& options);

}  // namespace ddp
