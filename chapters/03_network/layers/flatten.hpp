#pragma once
// [batch, anything...] seen as [batch, product of it]: the same numbers, no copy on the way
// forward.
#include "03_network/layer.hpp"

namespace ddp {

class Flatten : public Module {
  public:
    using Module::Module;
    Variable forward(Variable input) override;
};

}  // namespace ddp
