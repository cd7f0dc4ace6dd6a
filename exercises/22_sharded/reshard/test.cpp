// The exercise reshard: reads carried out on files whose element i is i.
#include "exercises/22_sharded/reshard.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr long padding = -1, unread = -2;

std::size_t rounded_up(std::size_t count, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return count / n + (count % n > 0);
}

// Returns the files of a checkpoint whose element i is i.
std::vector<std::vector<long>> files_of(std::size_t count, int ranks) {
    std::vector<std::vector<long>> files(static_cast<std::size_t>(ranks));
    const std::size_t size = rounded_up(count, ranks);
    for (std::size_t i = 0; i < size * files.size(); i++)
        files[i / size].push_back(i < count ? static_cast<long>(i) : padding);
    return files;
}

std::string to_string(const Read& read) {
    return std::to_string(read.count) + " elements from offset " + std::to_string(read.offset) +
           " of file " + std::to_string(read.file) + " to offset " + std::to_string(read.to);
}

// Carries out the reads; throws Wrong unless they give elements begin, ..., end - 1 of the model.
void require_reads(const std::vector<Read>& reads, const std::vector<std::vector<long>>& files,
                   std::size_t begin, std::size_t end, const std::string& what) {
    std::string said = what + ": you read ";
    for (const Read& read : reads)
        said += (&read == reads.data() ? "" : "; ") + to_string(read);
    said += (reads.empty() ? "nothing.\n" : ".\n");
    std::vector<long> got(end - begin, unread);
    for (const Read& read : reads) {
        if (read.count == 0)
            throw Wrong(said + "Leave out a read of 0 elements.");
        if (read.file < 0 || static_cast<std::size_t>(read.file) >= files.size())
            throw Wrong(said + "There is no file " + std::to_string(read.file) +
                        ": the model ends before that.");
        const auto& file = files[static_cast<std::size_t>(read.file)];
        if (read.offset + read.count > file.size())
            throw Wrong(said + "Every file has " + std::to_string(file.size()) +
                        " elements: an offset counts from the first element of its file, and the "
                        "ranks that have saved give the length of a file.");
        for (std::size_t i = 0; i < read.count; i++) {
            const long element = file[read.offset + i];
            if (element == padding)
                throw Wrong(said + "Element " + std::to_string(read.offset + i) + " of file " +
                            std::to_string(read.file) + " is padding: the model ends before that.");
            if (read.to + i >= got.size())
                throw Wrong(said + "Only " + std::to_string(got.size()) +
                            " elements are needed. Where do your reads end?");
            if (got[read.to + i] != unread)
                throw Wrong(said + "Element " + std::to_string(read.to + i) +
                            " of the result is written twice: `to` goes on where the last read "
                            "ended.");
            got[read.to + i] = element;
        }
    }
    for (std::size_t i = 0; i < got.size(); i++)
        if (got[i] != static_cast<long>(begin + i))
            throw Wrong(
                said + "Element " + std::to_string(i) + " of the result should be element " +
                std::to_string(begin + i) + " of the model, and is " +
                (got[i] == unread ? "not read at all: do other files have some of the elements?"
                                  : "element " + std::to_string(got[i]) +
                                        ": in which file do your elements begin, and where?"));
    for (std::size_t i = 1; i < reads.size(); i++)
        if (reads[i].file <= reads[i - 1].file)
            throw Wrong(said + "One read per file is enough, in the order of the files.");
}

void check_shard_reads() {
    for (const std::size_t count : {24, 25, 23, 5, 1})
        for (const auto& [from, to] :
             {std::pair{4, 3}, {3, 4}, {2, 2}, {1, 5}, {6, 1}, {8, 7}, {3, 8}}) {
            const auto files = files_of(count, from);
            for (int rank = 0; rank < to; rank++) {
                const std::string what = std::to_string(count) + " elements, saved by " +
                                         std::to_string(from) + " ranks, loaded by " +
                                         std::to_string(to) + ", rank " + std::to_string(rank);
                trying(what + ".");
                const std::size_t size = rounded_up(count, to);
                const std::size_t begin = std::min(count, static_cast<std::size_t>(rank) * size);
                require_reads(shard_reads(count, from, to, rank), files, begin,
                              std::min(count, begin + size), what);
            }
        }
}

void check_parameter_reads() {
    using Sizes = std::vector<std::size_t>;
    for (const Sizes& sizes :
         {Sizes{5, 3, 8}, {7}, {5, 0, 3, 9, 1}, {1, 2, 30, 4}, {0, 4, 0, 0, 3, 0}})
        for (const int from : {1, 2, 3, 4, 7}) {
            const std::size_t count = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
            const auto files = files_of(count, from);
            std::size_t begin = 0;
            for (std::size_t p = 0; p < sizes.size(); begin += sizes[p++]) {
                const std::string what = std::to_string(count) + " elements, saved by " +
                                         std::to_string(from) + " ranks; parameter " +
                                         std::to_string(p) + ", of " + std::to_string(sizes[p]);
                trying(what +
                       (sizes[p] == 0 ? ": it is empty, so there is nothing to read." : "."));
                require_reads(parameter_reads(sizes, from, p), files, begin, begin + sizes[p],
                              what);
            }
        }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"shard_reads", check_shard_reads}, {"parameter_reads", check_parameter_reads}};
}

}  // namespace ddp::test
