#pragma once
// The memory that a step takes: predicted from the model's sizes, and measured.
#include "16_recipe/dropout.hpp"
#include "20_transformer/transformer.hpp"
#include "common/report/table.hpp"

namespace ddp {

struct StepMemory {
    double learned = 0;  // bytes of parameters, their gradients, and Adam's two means of each
    double kept = 0;     // bytes of what forward keeps for backward
    double scores_gradient = 0;  // bytes of the largest gradient that backward has at one time

    double total() const { return learned + kept + scores_gradient; }
};

// Returns what a step on sentences of `length` tokens, as many in the source as in the target, will
// take of a model with these parameters. For a model with norm_first.
StepMemory predicted_memory(const TransformerOptions& options, const Parameters& parameters,
                            int sentences, int length);

// Makes a forward and a backward and returns what they took of the device that the model is on.
// Nothing but the model, its optimizer and the batch may be in use there.
StepMemory measured_memory(Device& device, Transformer& model, const DeviceBatch& batch);

// Returns the two beside each other.
Table memory_table(int width, const StepMemory& predicted, const StepMemory& measured);

}  // namespace ddp
