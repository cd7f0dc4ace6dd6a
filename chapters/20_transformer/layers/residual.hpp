#pragma once
// Around every sublayer: a way past it, a normalisation and dropout.
//
//     norm_first (pre-norm)                    otherwise (post-norm, as in the paper)
//
//     x ──┬─ norm ─ sublayer ─ dropout ─┐      x ──┬─ sublayer ─ dropout ─┐
//         └─────────────────────────── + ─►        └──────────────────── + ─ norm ─►
//
// With pre-norm the upper line is never interrupted: gradients reach the first layer as they left
// the last one, and training needs less warm-up (Xiong et al., 2020).
#include <functional>

#include "01_sgd/operations.hpp"
#include "03_network/layers/sequential.hpp"
#include "16_recipe/dropout.hpp"
#include "20_transformer/layers/layer_norm.hpp"

namespace ddp {

using Sublayer = std::function<Variable(Variable x)>;

class Residual {
  public:
    // Adds LAYER.normN and LAYER.dropoutN, where N is `number`, to `layers`, which must outlive
    // this object.
    Residual(Sequential& layers, const std::string& layer, int number, Device& device, int width,
             double dropout, bool norm_first, const DropoutMasks& masks)
        : norm_(layers.add<LayerNorm>(layer + ".norm" + std::to_string(number), device, width)),
          dropout_(
              layers.add<Dropout>(layer + ".dropout" + std::to_string(number), dropout, masks)),
          norm_first_(norm_first) {}

    // Returns x plus what the sublayer makes of it, as the picture shows.
    Variable around(Variable x, const Sublayer& sublayer) const {
        if (norm_first_)
            return add(x, dropout_.forward(sublayer(norm_.forward(x))));
        return norm_.forward(add(x, dropout_.forward(sublayer(x))));
    }

  private:
    LayerNorm& norm_;
    Dropout& dropout_;
    const bool norm_first_;
};

}  // namespace ddp
