// Layers, loss and whole model against PyTorch's: tests/golden/golden_transformer.py made the
// files.
#include <algorithm>

#include "20_transformer/layers/layer_norm.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr double relative = 1e-5, absolute = 1e-5;
constexpr int sentences = 3, length = 5, width = 6, heads = 2, hidden = 5;
const std::vector<int> lengths{5, 2, 4}, all_of_them{length, length, length};

// The layer's own part of a parameter's name: LAYER.linear1.weight is linear1.weight in the files.
std::string name_in_file(const Parameter& parameter, const std::string& layer) {
    return layer.empty() ? parameter.name : parameter.name.substr(layer.size() + 1);
}

// The first values, by the formula that golden_transformer.py describes.
void set_by_formula(const Parameters& parameters, const std::string& layer) {
    Parameters sorted = parameters;
    std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
        return name_in_file(*a, layer) < name_in_file(*b, layer);
    });
    for (std::uint32_t k = 0; k < sorted.size(); k++) {
        const std::string& name = sorted[k]->name;
        const bool is_scale = name.find("norm") != std::string::npos && name.ends_with("weight");
        Values values(sorted[k]->value.size());
        for (std::uint32_t i = 0; i < values.size(); i++)
            values[i] = (is_scale ? 1.0f : 0.0f) + (golden_unit(200 + k, i) - 0.5f);
        sorted[k]->value.copy_from(values);
    }
}

AttentionMask golden_mask(Device& device, const std::vector<int>& key_lengths, bool is_causal) {
    return {Labels(device, {sentences}, key_lengths), is_causal};
}

// What differs from the file; empty if nothing does.
class Differences {
  public:
    explicit Differences(const Golden& golden) : golden_(golden) {}
    void compare(const Tensor& tensor, const std::string& name) {
        const std::string difference =
            worst_difference(tensor.to_host(), golden_.tensor(name), relative, absolute);
        text_ += difference.empty() ? "" : name + ": " + difference + "; ";
    }
    void compare_gradients(const Parameters& parameters, const std::string& layer) {
        for (const auto& parameter : parameters)
            compare(parameter->gradient(), name_in_file(*parameter, layer) + "_gradient");
    }
    const std::string& text() const { return text_; }

  private:
    const Golden& golden_;
    std::string text_;
};

// Runs a layer both ways with the file's inputs, and returns what differs.
std::string differences(Device& device, const std::string& file, const Parameters& parameters,
                        const std::string& layer,
                        const std::function<Variable(Variable input, Variable memory)>& forward) {
    const Golden golden = read_golden(file);
    set_by_formula(parameters, layer);
    const bool has_memory = file == "attention_memory.txt" || file.starts_with("decoder");
    const auto x = std::make_shared<Parameter>("input", tensor_of(device, golden.tensor("input")));
    const auto memory = std::make_shared<Parameter>(
        "memory", tensor_of(device, golden.tensor(has_memory ? "memory" : "input")));
    Tape tape(device);
    const Variable input = tape.parameter(x);
    const Variable y = forward(input, has_memory ? tape.parameter(memory) : input);
    tape.backward(weighted_sum(y, golden.tensor("output_gradient").values));
    Differences found(golden);
    found.compare(y.value(), "output");
    found.compare_gradients(parameters, layer);
    found.compare(x->gradient(), "input_gradient");
    if (has_memory)
        found.compare(memory->gradient(), "memory_gradient");
    for (const Tape::Node& node : tape.nodes())
        if (file.starts_with("attention") && !has_memory && node.operation.ends_with(".weights"))
            found.compare(node.value, "weights");
    return found.text();
}

TransformerOptions options_of(bool norm_first) {
    return {.vocabulary = 9,
            .width = width,
            .heads = heads,
            .layers = 2,
            .feed_forward = hidden,
            .longest = length,
            .dropout = 0.0,
            .norm_first = norm_first,
            .tie_embeddings = norm_first};
}

}  // namespace

TEST_CASE("pytorch: layer_norm is its LayerNorm") {
    Device device;
    LayerNorm norm("norm", device, 37);
    REQUIRE(differences(device, "layer_norm.txt", norm.parameters(), "",
                        [&](Variable x, Variable) { return norm.forward(x); }) == "");
}

TEST_CASE("pytorch: attention is its MultiheadAttention") {
    Device device;
    Random random(1);
    const DropoutMasks masks(1);
    Sequential layers("layers");
    MultiHeadAttention attention(layers, "attn", device, width, heads, 0.0, random, masks);
    struct Case {
        std::string name;
        AttentionMask mask;
    };
    for (const Case& one : {Case{"padding", golden_mask(device, lengths, false)},
                            Case{"causal", golden_mask(device, all_of_them, true)},
                            Case{"memory", golden_mask(device, lengths, false)}}) {
        for (const auto& parameter : layers.parameters())
            parameter->clear_gradient();
        REQUIRE(differences(device, "attention_" + one.name + ".txt", layers.parameters(), "attn",
                            [&](Variable x, Variable memory) {
                                return attention.forward(x, memory, one.mask);
                            }) == "");
    }
}

TEST_CASE("pytorch: encoder and decoder layers are its own, with the norm first or last") {
    Device device;
    Random random(1);
    const DropoutMasks masks(1);
    for (const bool norm_first : {true, false}) {
        const std::string kind = norm_first ? "pre" : "post";
        Sequential layers("layers"), more_layers("layers");
        EncoderLayer encoder("layer", {layers, device, options_of(norm_first), random, masks});
        REQUIRE(differences(device, "encoder_layer_" + kind + ".txt", layers.parameters(), "layer",
                            [&](Variable x, Variable) {
                                return encoder.forward(x, golden_mask(device, lengths, false));
                            }) == "");
        DecoderLayer decoder("layer", {more_layers, device, options_of(norm_first), random, masks});
        REQUIRE(differences(device, "decoder_layer_" + kind + ".txt", more_layers.parameters(),
                            "layer", [&](Variable x, Variable memory) {
                                return decoder.forward(x, memory,
                                                       golden_mask(device, all_of_them, true),
                                                       golden_mask(device, lengths, false));
                            }) == "");
    }
}

TEST_CASE("pytorch: token_loss is its CrossEntropyLoss with label_smoothing and ignore_index") {
    Device device;
    const Golden golden = read_golden("token_loss.txt");
    const Values& numbers = golden.tensor("target").values;
    const std::vector<int> target(numbers.begin(), numbers.end());
    const auto tokens = target.size() - std::count(target.begin(), target.end(), int{pad_token});
    const auto x = std::make_shared<Parameter>("x", tensor_of(device, golden.tensor("input")));
    for (const int percent : {0, 10})
        for (const bool is_mean : {false, true}) {
            const std::string name = (is_mean ? "mean_" : "sum_") + std::to_string(percent);
            INFO(name);
            Tape tape(device);
            const Variable loss =
                token_loss(tape.parameter(x), Labels(device, {7}, target), percent / 100.0,
                           is_mean ? static_cast<double>(tokens) : 1.0);
            REQUIRE(loss.value().to_host()[0] == Approx(golden.number(name)).epsilon(1e-6));
            x->clear_gradient();
            tape.backward(loss);
            REQUIRE(worst_difference(x->gradient().to_host(), golden.tensor(name + "_gradient"),
                                     1e-5, 1e-7) == "");
        }
}

TEST_CASE("pytorch: the whole model is nn.Transformer between embeddings") {
    Device device;
    for (const bool norm_first : {true, false}) {
        const Golden golden =
            read_golden(norm_first ? "transformer_pre_tied.txt" : "transformer_post.txt");
        Random random(1);
        const DropoutMasks masks(1);
        Transformer model(device, options_of(norm_first), random, masks);
        set_by_formula(model.parameters(), "");
        const auto tokens = [&](const char* row) {
            const Values& all = golden.tensor(row).values;
            return Tokens(device, {sentences, length}, std::vector<int>(all.begin(), all.end()));
        };
        const Values& wanted = golden.tensor("wanted").values;
        const std::vector<int> target(wanted.begin(), wanted.end());
        const auto padding = std::count(target.begin(), target.end(), int{pad_token});
        Tape tape(device);
        const Variable logits = model.forward(tape, tokens("source"), tokens("target"));
        const Variable loss = token_loss(logits, Labels(device, {sentences * length}, target), 0.1,
                                         static_cast<double>(target.size()) - padding);
        REQUIRE(loss.value().to_host()[0] == Approx(golden.number("loss")).epsilon(1e-6));
        // The scores of tokens that are not padding.
        const Values all = logits.value().to_host();
        Values seen;
        for (std::size_t row = 0; row < target.size(); row++)
            if (target[row] != pad_token)
                seen.insert(seen.end(), &all[9 * row], &all[9 * row] + 9);
        REQUIRE(worst_difference(seen, golden.tensor("logits"), relative, absolute) == "");
        tape.backward(loss);
        Differences found(golden);
        found.compare_gradients(model.parameters(), "");
        REQUIRE(found.text() == "");
    }
}

}  // namespace ddp::test
