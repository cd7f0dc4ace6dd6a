// The exercise column_row: where do the two sums go? Read exercises/24_mesh/README.md first.
#include "exercises/24_mesh/column_row.hpp"

#include <algorithm>

namespace ddp {
// stub
namespace {

std::vector<double> hidden_of(const FeedForwardWeights& part, const std::vector<double>& x) {
    std::vector<double> hidden = part.b1;
    for (std::size_t h = 0; h < hidden.size(); h++) {
        for (std::size_t i = 0; i < x.size(); i++)
            hidden[h] += part.w1.at(h, i) * x[i];
        hidden[h] = std::max(hidden[h], 0.0);
    }
    return hidden;
}

}  // namespace
// end stub

FeedForwardWeights part_of(const FeedForwardWeights& whole, int rank, int ranks) {
    // stub: forward
    //: A hidden number is an output of w1 and an input of w2.
    const std::size_t size = whole.b1.size() / static_cast<std::size_t>(ranks);
    const std::size_t first = static_cast<std::size_t>(rank) * size;
    FeedForwardWeights part{{size, whole.w1.inputs}, {}, {whole.w2.outputs, size}, whole.b2};
    for (std::size_t h = 0; h < size; h++) {
        part.b1.push_back(whole.b1[first + h]);
        for (std::size_t i = 0; i < whole.w1.inputs; i++)
            part.w1.at(h, i) = whole.w1.at(first + h, i);
        for (std::size_t o = 0; o < whole.w2.outputs; o++)
            part.w2.at(o, h) = whole.w2.at(o, first + h);
    }
    return part;
    // end stub
}

std::vector<double> part_forward(const FeedForwardWeights& part, const std::vector<double>& x,
                                 const SumOverRanks& sum_over_ranks) {
    // stub: forward
    //: Which numbers are complete on this rank, and which are not?
    const std::vector<double> hidden = hidden_of(part, x);
    std::vector<double> y(part.b2.size());
    for (std::size_t o = 0; o < y.size(); o++)
        for (std::size_t h = 0; h < hidden.size(); h++)
            y[o] += part.w2.at(o, h) * hidden[h];
    sum_over_ranks(y);
    for (std::size_t o = 0; o < y.size(); o++)
        y[o] += part.b2[o];
    return y;
    // end stub
}

PartGradients part_backward(const FeedForwardWeights& part, const std::vector<double>& x,
                            const std::vector<double>& dy, const SumOverRanks& sum_over_ranks) {
    // stub: backward
    //: Who else has used what this rank has used?
    const std::vector<double> hidden = hidden_of(part, x);
    PartGradients gradients{std::vector<double>(x.size()), part};
    auto& [w1, b1, w2, b2] = gradients.parameters;
    b2 = dy;
    for (std::size_t h = 0; h < hidden.size(); h++) {
        double d_hidden = 0;
        for (std::size_t o = 0; o < dy.size(); o++) {
            w2.at(o, h) = dy[o] * hidden[h];
            d_hidden += dy[o] * part.w2.at(o, h);
        }
        b1[h] = hidden[h] > 0 ? d_hidden : 0;
        for (std::size_t i = 0; i < x.size(); i++) {
            w1.at(h, i) = b1[h] * x[i];
            gradients.x[i] += b1[h] * part.w1.at(h, i);
        }
    }
    sum_over_ranks(gradients.x);
    return gradients;
    // end stub
}

}  // namespace ddp
