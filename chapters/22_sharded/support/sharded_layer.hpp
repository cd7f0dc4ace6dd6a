#pragma once
// A layer whose parameters come before it computes and go afterwards, forward and backward.
#include <memory>

#include "22_sharded/sharded.hpp"

namespace ddp {

class ShardedLayer : public Module {
  public:
    // `sharded` must outlive this object; `unit` is the layer's.
    ShardedLayer(std::unique_ptr<Module> layer, ShardedDataParallel& sharded, std::size_t unit)
        : Module(layer->name()), layer_(std::move(layer)), sharded_(sharded), unit_(unit) {}

    Variable forward(Variable input) override;
    Parameters parameters() const override { return layer_->parameters(); }
    std::vector<NamedTensor> buffers() const override { return layer_->buffers(); }
    void set_training(bool is_training) override;

  private:
    const std::unique_ptr<Module> layer_;
    ShardedDataParallel& sharded_;
    const std::size_t unit_;
};

}  // namespace ddp
