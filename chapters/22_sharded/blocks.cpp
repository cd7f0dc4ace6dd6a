// Two kinds of models tell where a block ends:
//
//     Sequential     each layer is put into an ObservedLayer
//                    x ── linear1 ── end ── relu1 ── end ── linear2 ── end ──►
//     Transformer    calls the observer of its parts, of which some are blocks
//                    source ── encoder layer 0 ── end ── ... ── encoder norm ── target ── ...
//
// Other models need a function like these two, and a call behind each of their blocks.
#include "22_sharded/blocks.hpp"

#include <algorithm>

namespace ddp {
namespace {

// A layer that tells when its forward is over.
class ObservedLayer : public Module {
  public:
    ObservedLayer(std::unique_ptr<Module> layer, const EndOfBlock& end)
        : Module(layer->name()), layer_(std::move(layer)), end_(end) {}

    Variable forward(Variable input) override { return end_(layer_->forward(input), name()); }
    Parameters parameters() const override { return layer_->parameters(); }
    std::vector<NamedTensor> buffers() const override { return layer_->buffers(); }
    void set_training(bool is_training) override {
        Module::set_training(is_training);
        layer_->set_training(is_training);
    }

  private:
    const std::unique_ptr<Module> layer_;
    const EndOfBlock end_;
};

// Returns the parameters whose names begin with `prefix`: "encoder.layers.0." for a whole layer.
Parameters named(const Parameters& parameters, const std::string& prefix) {
    Parameters result;
    std::ranges::copy_if(parameters, std::back_inserter(result), [&](const auto& parameter) {
        return parameter->name.starts_with(prefix);
    });
    return result;
}

}  // namespace

// Layers without parameters, such as a ReLU, belong to the block before them.
Blocks blocks_of(Sequential& model) {
    std::vector<Block> blocks;
    // Replaces nothing: it is the one way to see each layer.
    model.replace_layers([&](std::unique_ptr<Module> layer) {
        if (const Parameters own = layer->parameters(); !own.empty())
            blocks.push_back({layer->name(), own});
        return layer;
    });
    return {model, blocks, [&model](const EndOfBlock& end) {
                model.replace_layers([&](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
                    if (layer->parameters().empty())
                        return layer;
                    return std::make_unique<ObservedLayer>(std::move(layer), end);
                });
            }};
}

// The embeddings, the norms behind the stacks and the scores are in none of them.
Blocks blocks_of(Transformer& model) {
    std::vector<Block> blocks;
    for (const std::string stack : {"encoder", "decoder"})
        for (int i = 0; i < model.options().layers; i++) {
            const std::string number = std::to_string(i);
            blocks.push_back({stack + " layer " + number,
                              named(model.parameters(), stack + ".layers." + number + ".")});
        }
    return {model, blocks, [&model](EndOfBlock end) { model.observe(std::move(end)); }};
}

// Stays whole on every rank.
Parameters Rest::parameters() const {
    Parameters frozen = model_.parameters();
    std::erase_if(frozen, [](const auto& parameter) { return !parameter->is_frozen; });
    return frozen;
}

// The size of the array in which rank 0 sends it.
std::size_t Rest::elements() const {
    std::size_t elements = 0;
    for (const auto& parameter : parameters())
        elements += parameter->value.size();
    for (const NamedTensor& buffer : buffers())
        elements += buffer.value.size();
    return elements;
}

}  // namespace ddp
