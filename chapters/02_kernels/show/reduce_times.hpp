#pragma once
// The times of the versions, beside what the memory allows.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "02_kernels/block_reduce.hpp"

namespace ddp {

// The measured time of one version with one block size. The limit is a version without additions.
struct ReduceTime {
    std::string version;
    unsigned int block;    // threads
    std::size_t elements;  // floats
    std::size_t steps;     // the longest chain of additions; 0 for the limit
    double seconds;        // the median of all rounds
    double spread;         // interquartile range of the rounds' times, relative to the median
    double share;          // bandwidth as a fraction of the limit's, the median of all rounds

    // Returns the array's size divided by the time.
    double bytes_per_second() const {
        return static_cast<double>(elements * sizeof(float)) / seconds;
    }
};

// Measures sums of up to `elements` floats: all versions and the limit in turn, `rounds` times.
// Returns a time for each version and, at the end, the limit's. On a CPU the limit is one thread
// that reads all elements with 64 sums at a time and does nothing else; on a GPU it is a copy
// within the device that moves as many bytes. Versions that would take very long get a 64th of the
// elements and are compared by bandwidth. Throws std::runtime_error if a version's sum is wrong.
std::vector<ReduceTime> time_reductions(const std::vector<BlockReduce>& versions,
                                        std::size_t elements, int rounds);

// The array whose work report_work prints.
inline constexpr std::size_t work_elements = 1 << 20;

// Prints the work of each version on work_elements elements, beside the measured time per element;
// `times` begins with those of `versions`. Writes, beside `csv`, a file whose name ends in _work,
// unless the path is empty.
void report_work(const std::vector<BlockReduce>& versions, const std::vector<ReduceTime>& times,
                 const std::filesystem::path& csv);

// Prints a table on stdout, and writes the file `csv` unless the path is empty.
void report(const std::string& title, const std::vector<ReduceTime>& times,
            const std::filesystem::path& csv);

}  // namespace ddp
