#pragma once
// The contract of the exercise owners: which rank has which element, in two layouts of shards.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The flat layout: all parameters stand one after the other, are padded at the end until their
// number divides, and are cut into one shard for each rank, all of one length. `sizes` has the
// number of elements of each parameter. It may be 0, but not for all of them.

struct Place {
    int rank;
    std::size_t offset;  // in the shard of that rank

    bool operator==(const Place&) const = default;
};

// Task flat_place. Returns where element number `element` of parameter number `parameter` is.
Place flat_place(const std::vector<std::size_t>& sizes, int world_size, std::size_t parameter,
                 std::size_t element);

// Elements begin, ..., end - 1 of a parameter.
struct Part {
    std::size_t parameter, begin, end;

    bool operator==(const Part&) const = default;
};

// Task flat_parts. Returns what the shard of `rank` holds, in its order. No part is empty, and
// padding is no part.
std::vector<Part> flat_parts(const std::vector<std::size_t>& sizes, int world_size, int rank);

struct Elements {
    std::size_t begin, end;

    bool operator==(const Elements&) const = default;
};

// Task row_part. The other layout cuts each parameter by itself, along its first dimension, as
// torch.chunk does: a parameter is `rows` rows of `row_size` elements. Every rank gets as many rows
// as the first one, rounded up, as long as there are any; so the last rank that gets rows may get
// fewer, and those behind it get none. Returns which elements of the parameter `rank` gets; for
// none, begin is end.
Elements row_part(std::size_t rows, std::size_t row_size, int world_size, int rank);

}  // namespace ddp
