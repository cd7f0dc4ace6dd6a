#include "20_transformer/layers/residual.hpp"

#include "01_sgd/operations.hpp"

namespace ddp {

Residual::Residual(Sequential& layers, const std::string& layer, int number, Device& device,
                   int width, double dropout, bool norm_first, const DropoutMasks& masks)
    : norm_(layers.add<LayerNorm>(layer + ".norm" + std::to_string(number), device, width)),
      dropout_(layers.add<Dropout>(layer + ".dropout" + std::to_string(number), dropout, masks)),
      norm_first_(norm_first) {}

Variable Residual::around(Variable x, const Sublayer& sublayer) const {
    if (norm_first_)
        return add(x, dropout_.forward(sublayer(norm_.forward(x))));
    return norm_.forward(add(x, dropout_.forward(sublayer(x))));
}

}  // namespace ddp
