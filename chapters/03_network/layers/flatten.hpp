#pragma once
// Flattens [batch, d1, d2, ...] to [batch, d1 * d2 * ...]. Forward copies nothing: the result is
// the same memory with another shape.
#include "03_network/layer.hpp"

namespace ddp {

class Flatten : public Module {
  public:
    using Module::Module;
    Variable forward(Variable input) override;
};

}  // namespace ddp
