#pragma once
// The parts of which every layer of a transformer is made, and their first values.
#include <string>
#include <vector>

#include "20_transformer/attention.hpp"
#include "20_transformer/layers/feed_forward.hpp"
#include "20_transformer/layers/residual.hpp"

namespace ddp {

struct TransformerOptions;

// Makes the parts of a model, all of one size, and adds their layers to `layers`, which must
// outlive the parts. The names of a part's layers begin with its `name`.
struct PartMaker {
    MultiHeadAttention attention(const std::string& name) const;
    FeedForward feed_forward(const std::string& name) const;
    Residual residual(const std::string& name, int number) const;

    Sequential& layers;
    Device& device;
    const TransformerOptions& options;
    Random& random;
    const DropoutMasks& masks;
};

// Makes the layers of a stack, from the bottom up.
template <class Layer>
std::vector<Layer> make_stack(const std::string& name, int layers, const PartMaker& make) {
    std::vector<Layer> stack;
    for (int i = 0; i < layers; i++)
        stack.emplace_back(name + ".layers." + std::to_string(i), make);
    return stack;
}

// Draws every matrix from the bound of Glorot and Bengio ("Xavier"): with it the numbers keep their
// size both on the way forward and on the way back.
void draw_matrices(const Parameters& parameters, Random& random);

}  // namespace ddp
