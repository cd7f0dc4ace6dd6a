#pragma once
// The parts of which every layer of a transformer is made, and their first values.
#include <string>
#include <vector>

#include "03_network/layers/without_parameters.hpp"
#include "20_transformer/attention.hpp"
#include "20_transformer/layers/residual.hpp"

namespace ddp {

struct TransformerOptions;

// The sublayer that looks at one token at a time: linear, ReLU, dropout, linear.
class FeedForward {
  public:
    // Adds LAYER.linear1 [hidden, width] and LAYER.linear2 [width, hidden] to `layers`, which must
    // outlive this object.
    FeedForward(Sequential& layers, const std::string& layer, Device& device, int width, int hidden,
                double dropout, Random& random, const DropoutMasks& masks)
        : linear1_(layers.add<Linear>(layer + ".linear1", device, width, hidden, random)),
          relu_(layers.add<Relu>(layer + ".relu")),
          dropout_(layers.add<Dropout>(layer + ".dropout", dropout, masks)),
          linear2_(layers.add<Linear>(layer + ".linear2", device, hidden, width, random)) {}

    // Computes [tokens, width] -> the same shape.
    Variable forward(Variable x) const {
        return linear2_.forward(dropout_.forward(relu_.forward(linear1_.forward(x))));
    }

  private:
    Linear& linear1_;
    Relu& relu_;
    Dropout& dropout_;
    Linear& linear2_;
};

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
