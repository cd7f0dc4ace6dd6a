// A gathering in three launches on one stream, for a chunk of c elements on each of N ranks:
//
//     shorten       own [c] float        -> sent [c] bfloat16
//     all-gather    sent of every rank   -> arrived [N c] bfloat16
//     lengthen      arrived [N c]        -> whole [N c] float
//
// This rank's own chunk goes the same way: a rank that computed with its exact chunk, beside the
// others' rounded ones, would have another model than they.
#include "22_sharded/support/short_gather.hpp"

#include <algorithm>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Rounds to the nearest bfloat16, and to the even one of two.
__global__ void shorten(std::size_t n, const float* from, __nv_bfloat16* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<__nv_bfloat16>(from[i]);
}

__global__ void lengthen(std::size_t n, const __nv_bfloat16* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<float>(from[i]);
}

}  // namespace

std::size_t ShortGather::longest_chunk(const Units& layout) {
    return std::ranges::max(layout.units, {}, &Unit::chunk).chunk;
}

// The two launches on nothing load the kernels. A rank that loaded one in its first step would make
// the others wait in a collective that already runs.
ShortGather::ShortGather(Mesh& mesh, const Units& layout, Stream& stream)
    : sent_(mesh.allocate<__nv_bfloat16>(longest_chunk(layout))),
      arrived_(mesh.allocate<__nv_bfloat16>(longest_chunk(layout) *
                                            static_cast<std::size_t>(mesh.world_size()))) {
    launch(stream, grid_for(1), shorten, std::size_t{0}, nullptr, sent_.data());
    launch(stream, grid_for(1), lengthen, std::size_t{0}, arrived_.data(), nullptr);
}

void ShortGather::all_gather(Mesh& mesh, const float* own, float* whole, std::size_t count,
                             Stream& stream, const std::string& name) {
    const std::size_t all = count * static_cast<std::size_t>(mesh.world_size());
    launch(stream, grid_for(count), shorten, count, own, sent_.data());
    mesh.all_gather(sent_.data(), arrived_.data(), count, stream, name);
    launch(stream, grid_for(all), lengthen, all, arrived_.data(), whole);
}

}  // namespace ddp
