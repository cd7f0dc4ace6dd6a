#include "24_mesh/support/activations.hpp"

#include <algorithm>

namespace ddp {

// A block of width h on t parts, for T tokens, in numbers:
//
//     whole on every part   10 T h      two norms with what they keep, two summands, two sums, two
//                                       residual sums
//     cut into parts        4 T h / t   queries, keys, values, what the heads take
//                           2 T f / t   the hidden columns, before and after ReLU
//                           a T s / t   the weights of a heads over s tokens
std::size_t predicted_activations(const MeshPlan& plan, int stage) {
    const LanguageModelOptions& o = plan.model;
    const int t = plan.shape.tp, stages = plan.shape.pp;
    const std::size_t tokens = static_cast<std::size_t>(plan.micro_sentences()) * o.length;
    const std::size_t whole = 10 * o.width + 2;  // and a statistic for each norm
    const std::size_t cut = (4 * o.width + 2 * o.feed_forward + o.heads * o.length) / t;
    std::size_t numbers = o.blocks / stages * (whole + cut);
    // The first stage has the embedding, its sum, the places and their sum; the others receive.
    numbers += stage == 0 ? 4 * o.width : o.width;
    if (stage == stages - 1)  // the norm, the scores, and three numbers for the loss
        numbers += 2 * o.width + 1 + o.vocabulary / t + 3;
    const int in_flight = plan.schedule == Schedule::gpipe
                              ? plan.micro_batches
                              : std::min(plan.micro_batches, stages - stage);
    return numbers * tokens * in_flight * sizeof(float);
}

}  // namespace ddp
