#pragma once
// Exercise owners: which rank has which element, in two layouts of shards.
//
//     flat: parameters a (5 elements) and b (2), 4 ranks     a a | a a | a b | b .   (. is padding)
//     by rows: 7 rows of 10 elements, 4 ranks                2 rows, 2 rows, 2 rows, 1 row
//
// The check also tries: one rank, more ranks than elements, parameters without elements.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

struct Place {
    int rank;
    std::size_t offset;  // in the shard of that rank

    bool operator==(const Place&) const = default;
};

// Task flat_place. Returns where this element of this parameter is in the flat layout: all
// parameters one after the other, cut into one shard per rank, all of one length. `sizes` has the
// numbers of elements. Above, element 0 of b is at {2, 1}.
Place flat_place(const std::vector<std::size_t>& sizes, int world_size, std::size_t parameter,
                 std::size_t element);

// Elements begin, ..., end - 1 of a parameter.
struct Part {
    std::size_t parameter, begin, end;

    bool operator==(const Part&) const = default;
};

// Task flat_parts. Returns what the shard of `rank` holds, in its order, without padding and
// without empty parts. Above, rank 2 has {0, 4, 5} and {1, 0, 1}.
std::vector<Part> flat_parts(const std::vector<std::size_t>& sizes, int world_size, int rank);

struct Elements {
    std::size_t begin, end;

    bool operator==(const Elements&) const = default;
};

// Task row_part. Returns which elements of one parameter `rank` gets if it is cut by rows, as
// torch.chunk does: rows / world_size of them, rounded up, as long as there are any. For none,
// begin is end. Above, rank 3 gets {60, 70}.
Elements row_part(std::size_t rows, std::size_t row_size, int world_size, int rank);

}  // namespace ddp
