#pragma once
// The sublayer that looks at one token at a time: linear, ReLU, dropout, linear.
#include "03_network/layers/sequential.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "16_recipe/dropout.hpp"

namespace ddp {

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

}  // namespace ddp
