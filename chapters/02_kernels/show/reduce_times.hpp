#pragma once
// How long the versions take, beside what the memory allows.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "02_kernels/block_reduce.hpp"

namespace ddp {

struct ReduceTime {
    std::string version;
    unsigned int block;    // threads
    std::size_t elements;  // floats
    std::size_t steps;     // the longest chain of additions
    double seconds;        // the median
    double spread;
    double share;  // of the limit's bandwidth, the median of all rounds'

    double bytes_per_second() const {
        return static_cast<double>(elements * sizeof(float)) / seconds;
    }
};

// Measures sums of up to `elements` floats, all versions and the limit in turn, `rounds` times. The
// limit is the last of the result: on a CPU one thread that reads all elements with 64 sums at a
// time, and does nothing else; on a GPU a copy within the device that moves as many bytes. Versions
// that would take very long get a 64th of the elements, and are compared by bandwidth. Throws
// std::runtime_error if one of them does not give the right sum.
std::vector<ReduceTime> time_reductions(const std::vector<BlockReduce>& versions,
                                        std::size_t elements, int rounds);

// Prints a table on stdout, and writes the file `csv` unless that is empty.
void report(const std::string& title, const std::vector<ReduceTime>& times,
            const std::filesystem::path& csv);

}  // namespace ddp
