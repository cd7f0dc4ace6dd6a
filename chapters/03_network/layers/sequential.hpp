#pragma once
// Layers in a row: each takes what the one before it gives.
#include <functional>
#include <memory>
#include <vector>

#include "03_network/layer.hpp"

namespace ddp {

class Sequential : public Module {
  public:
    using Module::Module;

    // Appends a layer made from `arguments`, which begin with its name:
    // model.add<Linear>("linear1", device, 784, 10, random).
    template <class Layer, class... Arguments>
    Layer& add(Arguments&&... arguments) {
        auto layer = std::make_unique<Layer>(std::forward<Arguments>(arguments)...);
        Layer& added = *layer;
        layers_.push_back(std::move(layer));
        return added;
    }

    // Every layer becomes what `replace` makes of it, which may be the layer itself; in a network
    // within this one its layers are asked for. New layers are in training where the old ones were.
    // Where `replace` throws, the network is of no more use.
    using Replace = std::function<std::unique_ptr<Module>(std::unique_ptr<Module> layer)>;
    void replace_layers(const Replace& replace);

    Variable forward(Variable input) override;
    Parameters parameters() const override;
    std::vector<NamedTensor> buffers() const override;
    void set_training(bool is_training) override;

    // Called in forward when a layer has enqueued all its work: for whoever measures. An empty one
    // ends it.
    using Observer = std::function<void(const Module& layer)>;
    void observe(Observer after_layer) { after_layer_ = std::move(after_layer); }

  private:
    std::vector<std::unique_ptr<Module>> layers_;
    Observer after_layer_;
};

}  // namespace ddp
