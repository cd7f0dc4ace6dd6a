#pragma once
// The ranks of a job as a mesh of three axes: replicas, stages of a pipeline, and parts of every
// matrix. (PyTorch's DeviceMesh with the names "dp", "pp" and "tp".) Eight ranks as 2 x 2 x 2:
//
//                    stage 0              stage 1
//     replica 0      rank 0 ═══ rank 1    rank 2 ═══ rank 3      ═══  tp
//     replica 1      rank 4 ═══ rank 5    rank 6 ═══ rank 7
//
//     tp   0 1, 2 3, 4 5, 6 7     four sums per block and micro-batch: neighbours, on one node
//     pp   0 2, 1 3, 4 6, 5 7     two messages per micro-batch
//     dp   0 4, 1 5, 2 6, 3 7     a sum of gradients per step
//
// A rank's place is its number written with three digits: tp counts fastest, dp slowest.
#include <memory>

#include "10_nodes/make_communicator.hpp"
#include "24_mesh/mesh_shape.hpp"

namespace ddp {

class DeviceMesh {
  public:
    // Places `rank` in the mesh. Throws OptionError unless the job has as many ranks.
    DeviceMesh(Rank& rank, const MeshShape& shape);

    Rank& rank() const { return rank_; }
    const MeshShape& shape() const { return shape_; }
    int size(Axis axis) const { return shape_.size(axis); }
    // Returns this rank's place on the axis, from 0 on.
    int index(Axis axis) const;
    // Returns this rank and those that differ from it in that place only.
    Group group(Axis axis) const;
    // Makes the communicator of that group, with `arena_bytes` for its allocate(). All ranks of the
    // job call it together, for the same axis.
    std::unique_ptr<Communicator> make_communicator(Axis axis, std::size_t arena_bytes) const;

  private:
    int step(Axis axis) const;  // from a rank to the next one on the axis

    Rank& rank_;
    const MeshShape shape_;
};

}  // namespace ddp
