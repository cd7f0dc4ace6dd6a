#pragma once
// y = max(x, 0), element by element. Its derivative at 0 is taken to be 0.
#include "03_network/layer.hpp"

namespace ddp {

class Relu : public Module {
  public:
    using Module::Module;
    Variable forward(Variable input) override;
};

}  // namespace ddp
