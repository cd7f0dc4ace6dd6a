// Every operation of forward keeps its result until backward has passed. Numbers that are kept for
// a token, of width W, with hidden layers F wide, H heads and sentences of T tokens:
//
//     an attention    query, key, value, values' sums, out_proj: 5 W; weights, dropped out: 2 H T
//     a feed-forward  linear1, relu, dropout: 3 F; linear2: W
//     around each     layer norm, and its input without mean and spread: 2 W; dropout, sum: 2 W
//     an encoder layer   (5 W + 2 H T) + (3 F + W) + 2 x 4 W      = 14 W + 3 F + 2 H T
//     a decoder layer    2 x (5 W + 2 H T) + (3 F + W) + 3 x 4 W  = 23 W + 3 F + 4 H T
//     the rest        two embeddings, dropped out; two norms      = 8 W
//     the scores      one for each token of the vocabulary        = V
#include "20_transformer/layers/step_memory.hpp"

#include "20_transformer/token_loss.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

double live_bytes(const Device& device) {
    return static_cast<double>(device.memory().live_bytes);
}

}  // namespace

StepMemory predicted_memory(const TransformerOptions& o, const Parameters& parameters,
                            int sentences, int length) {
    const double w = o.width, f = o.feed_forward, ht = double{1} * o.heads * length;
    const double encoder = o.layers * (14 * w + 3 * f + 2 * ht);
    const double decoder = o.layers * (23 * w + 3 * f + 4 * ht);
    const double tokens = static_cast<double>(sentences) * length, scores = tokens * o.vocabulary;
    double learned = 0;
    for (const auto& parameter : parameters)
        learned += static_cast<double>(parameter->value.size());
    return {4 * learned * sizeof(float),
            (tokens * (encoder + decoder + 8 * w) + scores) * sizeof(float),
            scores * sizeof(float)};
}

StepMemory measured_memory(Device& device, Transformer& model, const DeviceBatch& batch) {
    StepMemory memory{.learned = live_bytes(device)};
    Tape tape(device);
    const Variable logits = model.forward(tape, batch.source, batch.target_in);
    const Variable loss = token_loss(logits, batch.target_out, 0.1, 1);
    memory.kept = live_bytes(device) - memory.learned;
    tape.backward(loss);
    memory.scores_gradient =
        static_cast<double>(device.memory().peak_bytes) - memory.learned - memory.kept;
    return memory;
}

Table memory_table(int width, const StepMemory& predicted, const StepMemory& measured) {
    Table table("The memory of a step, width " + std::to_string(width),
                {"what", "predicted", "measured"});
    const auto row = [&](const std::string& what, double a, double b) {
        table.row({what, format_bytes(a), format_bytes(b)});
    };
    row("parameters, gradients, Adam's means", predicted.learned, measured.learned);
    row("kept by forward for backward", predicted.kept, measured.kept);
    row("the scores' gradient", predicted.scores_gradient, measured.scores_gradient);
    row("at most", predicted.total(), measured.total());
    return table;
}

}  // namespace ddp
