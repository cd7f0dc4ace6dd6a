#pragma once
// Attention: every token looks at other tokens, and takes from each as much as the two fit.
// (Vaswani et al., "Attention Is All You Need", 2017, 3.2; torch.nn.MultiheadAttention.)
#include "03_network/layers/sequential.hpp"
#include "03_network/linear.hpp"
#include "16_recipe/dropout.hpp"

namespace ddp {

// Which keys a query sees.
struct AttentionMask {
    Labels key_lengths;      // [sentences]: keys from this number on are padding
    bool is_causal = false;  // query i sees keys 0 .. i only
};

// Returns how much each query takes of each key, [sentences, heads, queries, keys]: softmax of
// query . key / sqrt(width / heads) over the keys that the mask lets it see, and 0 for the others.
// A query that sees no key has zeros only. `queries` is [sentences * queries, width], `keys`
// [sentences * keys, width]; head h has columns h * width / heads and so on. `label` names the
// result on the tape, where it can be read. Throws std::invalid_argument if the shapes do not fit.
Variable attention_weights(Variable queries, Variable keys, const AttentionMask& mask, int heads,
                           const std::string& label = "attention_weights");

// Returns, for each query, the sum of all `values` [sentences * keys, width] by these weights:
// [sentences * queries, width].
Variable weighted_values(Variable weights, Variable values);

class MultiHeadAttention {
  public:
    // Adds its layers to `layers`, which owns them and must outlive this object: NAME.query, .key,
    // .value and .out_proj. (PyTorch's in_proj_weight is the first three, stacked.) Throws
    // std::invalid_argument if `heads` does not divide `width`.
    MultiHeadAttention(Sequential& layers, const std::string& name, Device& device, int width,
                       int heads, double dropout, Random& random, const DropoutMasks& masks);

    // Returns what the tokens `x` [sentences * queries, width] take of the tokens `memory`
    // [sentences * keys, width], in the shape of x. In self-attention the two are the same. The
    // weights are on the tape by the name NAME.weights.
    Variable forward(Variable x, Variable memory, const AttentionMask& mask);
    // Does the same with keys and values that have been made before, by `key` and `value`.
    Variable forward(Variable x, Variable keys, Variable values, const AttentionMask& mask);

    Linear& query;
    Linear& key;
    Linear& value;

  private:
    Linear& out_proj_;
    Dropout& dropout_;
    const std::string name_;
    const int heads_;
};

}  // namespace ddp
