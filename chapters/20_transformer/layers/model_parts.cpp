#include "20_transformer/layers/model_parts.hpp"

#include <cmath>

#include "20_transformer/decoder_only.hpp"

namespace ddp {

MultiHeadAttention PartMaker::attention(const std::string& name) const {
    return {layers, name, device, options.width, options.heads, options.dropout, random, masks};
}

FeedForward PartMaker::feed_forward(const std::string& name) const {
    return {layers,          name,   device, options.width, options.feed_forward,
            options.dropout, random, masks};
}

Residual PartMaker::residual(const std::string& name, int number) const {
    return {layers, name, number, device, options.width, options.dropout, options.norm_first,
            masks};
}

void draw_matrices(const Parameters& parameters, Random& random) {
    for (const auto& parameter : parameters) {
        const Shape& shape = parameter->value.shape();
        if (shape.size() != 2)
            continue;
        const auto bound = static_cast<float>(std::sqrt(6.0 / (shape[0] + shape[1])));
        std::vector<float> values(parameter->value.size());
        for (float& value : values)
            value = random.uniform(-bound, bound);
        parameter->value.copy_from(values);
    }
}

std::unique_ptr<TranslationModel> make_translation_model(Device& device,
                                                         const TransformerOptions& options,
                                                         Random& random,
                                                         const DropoutMasks& masks) {
    if (options.decoder_only)
        return std::make_unique<DecoderOnlyTransformer>(device, options, random, masks);
    return std::make_unique<Transformer>(device, options, random, masks);
}

TokenBatch batch_for(const TranslationModel& model, const TokenBatch& batch) {
    return model.options().decoder_only ? joined(batch) : batch;
}

}  // namespace ddp
