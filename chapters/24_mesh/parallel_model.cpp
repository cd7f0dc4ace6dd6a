#include "24_mesh/parallel_model.hpp"

#include <stdexcept>

#include "01_sgd/operations.hpp"

#include "03_network/layers/without_parameters.hpp"
#include "20_transformer/layers/embedding.hpp"

namespace ddp {

// ---- A block

ParallelBlock::ParallelBlock(TensorParallel& parallel, const std::string& name, Device& device,
                             const LanguageModelOptions& o, Random& random)
    : parallel_(parallel),
      name_(name),
      heads_(o.heads / parallel.parts()),
      norm1_(std::make_unique<LayerNorm>(name + ".norm1", device, o.width)),
      norm2_(std::make_unique<LayerNorm>(name + ".norm2", device, o.width)),
      query_(parallel, name + ".query", device, o.width, o.width, random),
      key_(parallel, name + ".key", device, o.width, o.width, random),
      value_(parallel, name + ".value", device, o.width, o.width, random),
      up_(parallel, name + ".up", device, o.width, o.feed_forward, random),
      out_(parallel, name + ".out", device, o.width, o.width, random),
      down_(parallel, name + ".down", device, o.feed_forward, o.width, random) {
    if (o.heads % parallel.parts() != 0)
        throw std::invalid_argument(std::to_string(o.heads) + " heads cannot be dealt out to " +
                                    std::to_string(parallel.parts()) + " parts");
}

Variable ParallelBlock::forward(Variable x, const AttentionMask& mask) {
    x = add(x, attention(norm1_->forward(x), mask));
    return add(x, feed_forward(norm2_->forward(x)));
}

// A head needs its own columns of query, key and value, and no other head.
Variable ParallelBlock::attention(Variable x, const AttentionMask& mask) {
    const PartVariables xs = to_parts(parallel_, x, name_ + ".attention");
    const PartVariables q = query_.forward(xs), k = key_.forward(xs), v = value_.forward(xs);
    PartVariables heads;
    for (std::size_t p = 0; p < xs.size(); p++)
        heads.push_back(weighted_values(attention_weights(q[p], k[p], mask, heads_), v[p]));
    return out_.forward(heads);
}

// ReLU takes each number alone, so it may stand between the two.
Variable ParallelBlock::feed_forward(Variable x) {
    PartVariables hidden = up_.forward(to_parts(parallel_, x, name_ + ".feed_forward"));
    for (Variable& part : hidden)
        part = Relu(name_ + ".relu").forward(part);
    return down_.forward(hidden);
}

void ParallelBlock::append_to(Parameters& parameters) const {
    for (const LayerNorm* norm : {norm1_.get(), norm2_.get()})
        for (const auto& parameter : norm->parameters())
            parameters.push_back(parameter);
    for (const MatrixParts* layer :
         std::initializer_list<const MatrixParts*>{&query_, &key_, &value_, &up_, &out_, &down_})
        layer->append_to(parameters);
}

// ---- A stage

ParallelModel::ParallelModel(TensorParallel& parallel, Device& device,
                             const LanguageModelOptions& o, int stage, int stages,
                             std::uint64_t seed)
    : Module("language_model"), parallel_(parallel), options_(o) {
    if (o.blocks % stages != 0)
        throw std::invalid_argument(std::to_string(o.blocks) + " blocks cannot be dealt out to " +
                                    std::to_string(stages) + " stages");
    // A generator for each piece: a stage need not draw what is before it.
    const auto random = [&](int piece) {
        return Random(seed * 1000 + static_cast<std::uint64_t>(piece));
    };
    if (stage == 0) {
        Random own = random(0);
        embedding_ = std::make_unique<VocabularyParallelEmbedding>(parallel, "embedding", device,
                                                                   o.vocabulary, o.width, own);
    }
    const int blocks = o.blocks / stages;
    for (int b = stage * blocks; b < (stage + 1) * blocks; b++) {
        Random own = random(1 + b);
        blocks_.push_back(
            std::make_unique<ParallelBlock>(parallel, "block" + std::to_string(b), device, o, own));
    }
    if (stage == stages - 1) {
        Random own = random(1 + o.blocks);
        norm_ = std::make_unique<LayerNorm>("norm", device, o.width);
        scores_ = std::make_unique<ColumnParallelLinear>(parallel, "scores", device, o.width,
                                                         o.vocabulary, own);
    }
}

Variable ParallelModel::forward(Tape& tape, std::optional<Variable> input, const Tokens& tokens,
                                const Labels& target) {
    const AttentionMask looking_back{lengths_without_padding(tokens), true};
    Variable x = input ? *input : embed(tape, tokens);
    for (const auto& block : blocks_)
        x = block->forward(x, looking_back);
    if (!scores_)
        return x;
    const PartVariables xs = to_parts(parallel_, norm_->forward(x), "scores");
    return vocabulary_parallel_loss(parallel_, scores_->forward(xs), target);
}

// Token and place. The places are computed, not learned, and added once, after the sum.
Variable ParallelModel::embed(Tape& tape, const Tokens& tokens) {
    const int sentences = tokens.dim(0), length = tokens.dim(1), width = options_.width;
    const std::vector<float> places =
        sinusoidal_positions(tokens.device(), length, width).to_host();
    std::vector<float> all;
    for (int s = 0; s < sentences; s++)
        all.insert(all.end(), places.begin(), places.end());
    return add(embedding_->forward(tape, tokens),
               tape.constant(Tensor(tokens.device(), {sentences * length, width}, all)));
}

Parameters ParallelModel::parameters() const {
    Parameters all;
    if (embedding_)
        embedding_->append_to(all);
    for (const auto& block : blocks_)
        block->append_to(all);
    if (norm_)
        for (const auto& parameter : norm_->parameters())
            all.push_back(parameter);
    if (scores_)
        scores_->append_to(all);
    return all;
}

}  // namespace ddp
