#pragma once
// Gathers a unit with half of the bytes, here on rank 0 of two. What the optimizer changes stays in
// full precision on its rank; what travels, and what a step computes with, is rounded.
//
//     chunk of rank 0    float       0.1234567                      the optimizer's
//        |  shorten: round to bfloat16
//     sent               bfloat16    0.1235
//        |  all-gather, 2 bytes an element
//     arrived            bfloat16    0.1235  0.5781                 of both ranks
//        |  lengthen: exact, since every bfloat16 is a float
//     the unit's slot    float       0.1235  0.5781                 forward's and backward's
//
// (MixedPrecisionPolicy(param_dtype=torch.bfloat16) of fully_shard, which then also multiplies in
// 16 bits and has no slot of floats.)
#include <cuda_bf16.h>

#include "22_sharded/mesh.hpp"
#include "22_sharded/units.hpp"

namespace ddp {

class ShortGather {
  public:
    // Takes memory from the mesh for any unit of this layout, and loads the kernels.
    ShortGather(Mesh& mesh, const Units& layout, Stream& stream);

    // Returns the bytes that this takes, without the gaps between arrays.
    static std::size_t bytes(const Units& layout, int ranks) {
        return (1 + static_cast<std::size_t>(ranks)) * longest_chunk(layout) *
               sizeof(__nv_bfloat16);
    }
    // Returns the arena size that it needs.
    static std::size_t arena_bytes(const Units& layout, int ranks) {
        return bytes(layout, ranks) + 2 * SharedArena::unit;
    }

    // Does what the mesh's all_gather does, with numbers that are rounded on their way.
    void all_gather(Mesh& mesh, const float* own, float* whole, std::size_t count, Stream& stream,
                    const std::string& name);

  private:
    static std::size_t longest_chunk(const Units& layout);

    // One array serves all units: the communication stream gathers them one after the other.
    ArenaBuffer<__nv_bfloat16> sent_, arrived_;
};

}  // namespace ddp
