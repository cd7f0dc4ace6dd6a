// The exercise chunk_norm: the norm of gradients that no rank has as a whole. Read
// exercises/22_sharded/README.md first.
#include "exercises/22_sharded/chunk_norm.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {
// stub
namespace {

double sum_of_squares(const float* gradients, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; i++)
        sum += double{gradients[i]} * double{gradients[i]};
    return sum;
}

}  // namespace
// end stub

double global_norm(const RankGradients& gradients, const SumOverRanks& sum_over_ranks) {
    // stub: global_norm
    //: Add over the ranks. But has every rank some of it already?
    std::vector<double> squares = {sum_of_squares(gradients.chunk.data(), gradients.own)};
    sum_over_ranks(squares);
    return std::sqrt(squares[0] + sum_of_squares(gradients.whole.data(), gradients.whole.size()));
    // end stub
}

void clip(RankGradients& gradients, double norm, double max_norm) {
    // stub: clip
    //: One factor for all gradients of all ranks.
    const auto factor = static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6)));
    for (float& gradient : gradients.chunk)
        gradient *= factor;
    for (float& gradient : gradients.whole)
        gradient *= factor;
    // end stub
}

double norm_by_blocks(const std::vector<float>& chunk, std::size_t begin, std::size_t count,
                      const SumOverRanks& sum_over_ranks) {
    // stub: same_bits
    //: In which order are the squares added with one rank? And with two?
    std::vector<double> squares((count + norm_block - 1) / norm_block);
    for (std::size_t first = 0; first < chunk.size(); first += norm_block)
        squares[(begin + first) / norm_block] =
            sum_of_squares(chunk.data() + first, std::min(norm_block, chunk.size() - first));
    sum_over_ranks(squares);
    double sum = 0;
    for (const double of_block : squares)
        sum += of_block;
    return std::sqrt(sum);
    // end stub
}

}  // namespace ddp
