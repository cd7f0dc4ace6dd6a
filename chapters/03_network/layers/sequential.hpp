#pragma once
// A network of layers in a row: the output of each layer is the input of the next.
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

    // Replaces every layer by the result of `replace`, which may be the layer itself; in a nested
    // network, replaces the layers of that network. A new layer is in training mode if the old one
    // was. If `replace` throws, the network must not be used any more.
    using Replace = std::function<std::unique_ptr<Module>(std::unique_ptr<Module> layer)>;
    void replace_layers(const Replace& replace);

    // Replaces every two layers, one behind the other, by the layer that `join` makes of them; null
    // keeps the two. In a nested network, joins the layers of that network.
    using Join = std::function<std::unique_ptr<Module>(const Module& first, const Module& second)>;
    void join_layers(const Join& join);

    Variable forward(Variable input) override;
    Parameters parameters() const override;
    std::vector<NamedTensor> buffers() const override;
    void set_training(bool is_training) override;

    // Calls `after_layer` in forward, for each layer, when the layer has enqueued all its work. An
    // empty function ends the observation.
    using Observer = std::function<void(const Module& layer)>;
    void observe(Observer after_layer) { after_layer_ = std::move(after_layer); }

  private:
    std::vector<std::unique_ptr<Module>> layers_;
    Observer after_layer_;
};

}  // namespace ddp
