#pragma once
// A file of measured links, which the simulator reads in the place of alpha and beta.
#include <filesystem>

#include "21_cluster/simulated_all_reduce.hpp"

namespace ddp {

struct MeasuredLinks {
    simulator::Link inside, between;
};

// Reads a CSV file with the time of one message between two ranks that do nothing else, one way:
//
//     link,bytes,seconds
//     inside,4096,0.0000031
//     inside,1048576,0.00021
//     between,4096,0.000061
//     between,1048576,0.0091
//
// The bytes of each link grow from line to line, and each has two lines or more. If only one of the
// links is there, it is taken for both. Throws std::runtime_error, with the line, if it is not so.
MeasuredLinks read_links(const std::filesystem::path& path);

}  // namespace ddp
