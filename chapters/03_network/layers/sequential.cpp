#include "03_network/layers/sequential.hpp"

#include <algorithm>

namespace ddp {

void Sequential::replace_layers(const Replace& replace) {
    for (auto& layer : layers_) {
        if (auto* network = dynamic_cast<Sequential*>(layer.get())) {
            network->replace_layers(replace);
            continue;
        }
        const bool is_training = layer->is_training();
        layer = replace(std::move(layer));
        layer->set_training(is_training);
    }
}

void Sequential::join_layers(const Join& join) {
    for (std::size_t i = 0; i < layers_.size(); i++) {
        if (auto* network = dynamic_cast<Sequential*>(layers_[i].get()))
            network->join_layers(join);
        if (i + 1 == layers_.size())
            return;
        if (auto joined = join(*layers_[i], *layers_[i + 1])) {
            joined->set_training(layers_[i]->is_training());
            layers_[i] = std::move(joined);
            layers_.erase(layers_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
    }
}

Variable Sequential::forward(Variable input) {
    Variable value = input;
    for (const auto& layer : layers_) {
        value = layer->forward(value);
        if (after_layer_)
            after_layer_(*layer);
    }
    return value;
}

Parameters Sequential::parameters() const {
    Parameters all;
    for (const auto& layer : layers_)
        for (const auto& parameter : layer->parameters())
            if (std::find(all.begin(), all.end(), parameter) == all.end())  // tied ones: once
                all.push_back(parameter);
    return all;
}

std::vector<NamedTensor> Sequential::buffers() const {
    std::vector<NamedTensor> all;
    for (const auto& layer : layers_)
        for (const NamedTensor& buffer : layer->buffers())
            all.push_back(buffer);
    return all;
}

void Sequential::set_training(bool is_training) {
    Module::set_training(is_training);
    for (const auto& layer : layers_)
        layer->set_training(is_training);
}

}  // namespace ddp
