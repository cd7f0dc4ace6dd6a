// The exercise bracketing: who adds what, and which bits come of it. Read
// exercises/08_reduce/README.md first.
#include "exercises/08_reduce/bracketing.hpp"

namespace ddp {
// stub
namespace {

// Puts a sum into brackets, if it is one.
std::string bracketed(const std::string& sum) {
    return sum.find('+') == std::string::npos ? sum : "(" + sum + ")";
}

// Returns the sum of the ranks from `first` on, a group of `size`, of which there are `ranks` in
// all: the last group may have fewer.
std::string sum_of_group(int first, int size, int ranks) {
    if (size == 1)
        return "x" + std::to_string(first);
    const int middle = first + size / 2;
    const std::string left = sum_of_group(first, size / 2, ranks);
    if (middle >= ranks)
        return left;
    return bracketed(left) + "+" + bracketed(sum_of_group(middle, size / 2, ranks));
}

bool leads_its_group(int rank, int size, int root) {
    return rank == (rank / size == root / size ? root : rank / size * size);
}

}  // namespace
// end stub

std::string held_by(int rank, int ranks, int root) {
    // stub: held
    //: The rank has the sum of the largest group that it leads.
    int size = 1;
    while (size < ranks && leads_its_group(rank, 2 * size, root))
        size *= 2;
    return sum_of_group(rank / size * size, size, ranks);
    // end stub
}

std::vector<float> tree_sum(const std::vector<std::vector<float>>& arrays) {
    // stub: bits
    //: Which arrays are added first? Which of them are left, and how far apart are they then?
    std::vector<std::vector<float>> sums = arrays;
    for (std::size_t distance = 1; distance < sums.size(); distance *= 2)
        for (std::size_t rank = 0; rank + distance < sums.size(); rank += 2 * distance)
            for (std::size_t i = 0; i < sums[rank].size(); i++)
                sums[rank][i] += sums[rank + distance][i];
    return sums[0];
    // end stub
}

}  // namespace ddp
