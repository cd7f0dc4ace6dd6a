#include "24_mesh/device_mesh.hpp"

#include "common/report/options.hpp"

namespace ddp {

DeviceMesh::DeviceMesh(Rank& rank, const MeshShape& shape) : rank_(rank), shape_(shape) {
    if (shape.ranks() != rank.world_size())
        throw OptionError("A mesh of " + shape.text() + " needs " + std::to_string(shape.ranks()) +
                          " ranks, and this job has " + std::to_string(rank.world_size()) + ".");
}

int DeviceMesh::step(Axis axis) const {
    return axis == Axis::tp ? 1 : axis == Axis::pp ? shape_.tp : shape_.tp * shape_.pp;
}

int DeviceMesh::index(Axis axis) const {
    return rank_.rank() / step(axis) % size(axis);
}

Group DeviceMesh::group(Axis axis) const {
    const int first = rank_.rank() - index(axis) * step(axis);
    std::vector<int> ranks;
    for (int i = 0; i < size(axis); i++)
        ranks.push_back(first + i * step(axis));
    return Group(ranks);
}

std::unique_ptr<Communicator> DeviceMesh::make_communicator(Axis axis,
                                                            std::size_t arena_bytes) const {
    return ddp::make_communicator("native", rank_, arena_bytes, {.group = group(axis)});
}

}  // namespace ddp
