// The whole model: finite differences, padding and the future change nothing, tied embeddings, and
// dropout that knows samples and not ranks.
#include "20_transformer/transformer.hpp"
#include "20_transformer/token_loss.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

const TransformerOptions tiny{.vocabulary = 9,
                              .width = 6,
                              .heads = 3,
                              .layers = 1,
                              .feed_forward = 5,
                              .longest = 12,
                              .dropout = 0.0};

// Sentences, each of a source and a target, padded to `length`.
DeviceBatch batch_of(Device& device, const std::vector<std::vector<int>>& rows, int length) {
    TokenBatch batch{.sentences = static_cast<int>(rows.size()) / 2, .length = length};
    for (std::size_t i = 0; i < rows.size(); i++) {
        std::vector<int>& tokens = i % 2 == 0 ? batch.source : batch.target_in;
        tokens.insert(tokens.end(), rows[i].begin(), rows[i].end());
        tokens.resize((i / 2 + 1) * static_cast<std::size_t>(length), 0);
    }
    return to_device(device, batch);
}

Variable forward_of(Transformer& model, Tape& tape, const DeviceBatch& batch) {
    return model.forward(tape, batch.source, batch.target_in);
}

const std::vector<std::vector<int>> two_pairs{{4, 7, 5, 2}, {1, 6, 8}, {8, 2}, {1, 4, 4, 5}};
const std::vector<int> two_targets{6, 8, 2, 0, 4, 4, 5, 2};

Values logits_of(Device& device, Transformer& model, const DeviceBatch& batch) {
    Tape tape(device);
    return forward_of(model, tape, batch).value().to_host();
}

}  // namespace

TEST_CASE("transformer: backward agrees with finite differences") {
    Device device;
    for (const bool is_pre_and_tied : {true, false}) {
        CAPTURE(is_pre_and_tied);
        Random random(1);  // with it no number before a ReLU is near 0
        const DropoutMasks masks(1);
        TransformerOptions options = tiny;
        options.width = 4;
        options.heads = 2;
        options.norm_first = options.tie_embeddings = is_pre_and_tied;
        Transformer model(device, options, random, masks);
        const DeviceBatch tokens = batch_of(device, two_pairs, 4);
        const Labels targets(device, {8}, two_targets);
        const auto forward = [&](Tape& tape) {
            return token_loss(forward_of(model, tape, tokens), targets, 0.1, 1);
        };
        // The tables and all vectors: the matrices between them are small copies of what the
        // layers' own tests see. A key's bias changes all scores of a query alike, and softmax does
        // not see it.
        Parameters seen;
        for (const auto& parameter : model.parameters())
            if ((parameter->value.shape().size() == 1 || parameter->value.dim(0) == 9) &&
                !parameter->name.ends_with(".key.bias"))
                seen.push_back(parameter);
        REQUIRE(message_of([&] { require_gradients(device, seen, forward, 4e-3, 2e-2); }) == "");
        for (const auto& parameter : model.parameters())
            if (parameter->name.ends_with(".key.bias"))
                for (const float gradient : parameter->gradient().to_host())
                    REQUIRE(gradient == Approx(0).margin(1e-6));
    }
}

TEST_CASE("transformer: its parameters, each once, in the order of forward") {
    Device device;
    Random random(3);
    const DropoutMasks masks(1);
    std::vector<std::string> names;
    for (const auto& parameter : Transformer(device, tiny, random, masks).parameters())
        names.push_back(parameter->name);
    REQUIRE(names.size() == 1 + (8 + 4 + 4) + 2 + (16 + 4 + 6) + 2);
    REQUIRE(names[0] == "embedding.weight");
    REQUIRE(names[1] == "encoder.layers.0.self_attn.query.weight");
    REQUIRE(names[8] == "encoder.layers.0.self_attn.out_proj.bias");
    REQUIRE(names[9] == "encoder.layers.0.linear1.weight");
    REQUIRE(names[13] == "encoder.layers.0.norm1.weight");
    REQUIRE(names[17] == "encoder.norm.weight");
    REQUIRE(names[27] == "decoder.layers.0.multihead_attn.query.weight");
    REQUIRE(names.back() == "decoder.norm.bias");
    TransformerOptions untied = tiny;
    untied.tie_embeddings = false;
    REQUIRE(Transformer(device, untied, random, masks).parameters().size() == names.size() + 2);
}

TEST_CASE("transformer: the tied table is the last gradient to be final, an own output the first") {
    Device device;
    for (const bool tie_embeddings : {true, false}) {
        Random random(3);
        const DropoutMasks masks(1);
        TransformerOptions options = tiny;
        options.tie_embeddings = tie_embeddings;
        Transformer model(device, options, random, masks);
        Tape tape(device);
        const Variable logits = forward_of(model, tape, batch_of(device, two_pairs, 4));
        std::vector<std::string> order;
        tape.backward(token_loss(logits, Labels(device, {8}, two_targets), 0.1, 1),
                      [&](Parameter& parameter) { order.push_back(parameter.name); });
        REQUIRE(order.size() == model.parameters().size());
        REQUIRE(order.front() == (tie_embeddings ? "decoder.norm.bias" : "output.weight"));
        REQUIRE(order.back() == (tie_embeddings ? "embedding.weight" : "source_embedding.weight"));
    }
}

TEST_CASE("transformer: more padding changes nothing") {
    Device device;
    Random random(3);
    const DropoutMasks masks(1);
    Transformer model(device, tiny, random, masks);
    std::vector<Values> logits, gradients;
    for (const int length : {4, 7}) {
        Tape tape(device);
        const Variable scores = forward_of(model, tape, batch_of(device, two_pairs, length));
        std::vector<int> targets;
        for (int sentence = 0; sentence < 2; sentence++) {
            targets.insert(targets.end(), &two_targets[4 * sentence],
                           &two_targets[4 * sentence] + 4);
            targets.resize((sentence + 1) * length, 0);
        }
        tape.backward(token_loss(scores, Labels(device, {2 * length}, targets), 0.1, 7));
        const Values all = scores.value().to_host();
        logits.emplace_back();
        for (int row = 0; row < 2 * length; row++)
            if (row % length < 4)
                logits.back().insert(logits.back().end(), &all[9 * row], &all[9 * row] + 9);
        gradients.emplace_back();
        for (const auto& parameter : model.parameters()) {
            const Values gradient = parameter->gradient().to_host();
            gradients.back().insert(gradients.back().end(), gradient.begin(), gradient.end());
            parameter->clear_gradient();
        }
    }
    for (std::size_t i = 0; i < logits[0].size(); i++)
        REQUIRE(logits[0][i] == Approx(logits[1][i]).margin(1e-5));
    for (std::size_t i = 0; i < gradients[0].size(); i++)
        REQUIRE(gradients[0][i] == Approx(gradients[1][i]).margin(1e-5));
}

TEST_CASE(
    "transformer: a later token of the target changes no earlier score, one of the source all") {
    Device device;
    for (const bool norm_first : {true, false}) {
        Random random(3);
        const DropoutMasks masks(1);
        TransformerOptions options = tiny;
        options.norm_first = norm_first;
        options.layers = 2;
        Transformer model(device, options, random, masks);
        std::vector<std::vector<int>> changed = two_pairs;
        changed[3] = {1, 4, 8, 5};
        const Values before = logits_of(device, model, batch_of(device, two_pairs, 4));
        const Values after = logits_of(device, model, batch_of(device, changed, 4));
        for (int row = 0; row < 8; row++)
            for (int c = 0; c < 9; c++)
                REQUIRE((before[9 * row + c] == after[9 * row + c]) == (row < 6));
        changed = two_pairs;
        changed[2] = {7, 2};
        const Values other = logits_of(device, model, batch_of(device, changed, 4));
        for (int row = 0; row < 8; row++)
            for (int c = 0; c < 9; c++)
                REQUIRE((before[9 * row + c] == other[9 * row + c]) == (row < 4));
    }
}

TEST_CASE("transformer: dropout depends on step and sample, not on who else is in the batch") {
    Device device;
    Random random(3);
    DropoutMasks masks(5);
    TransformerOptions options = tiny;
    options.dropout = 0.3;
    Transformer model(device, options, random, masks);
    const auto run = [&](const std::vector<std::vector<int>>& pairs, DropoutStep step) {
        masks.begin(step);
        return logits_of(device, model, batch_of(device, pairs, 4));
    };
    const Values both = run(two_pairs, {.step = 2, .samples = 2});
    REQUIRE(both == run(two_pairs, {.step = 2, .samples = 2}));
    REQUIRE(both != run(two_pairs, {.step = 3, .samples = 2}));
    // Rank 1 of 2 has the second sample.
    const Values second =
        run({two_pairs[2], two_pairs[3]}, {.step = 2, .samples = 1, .first = 1, .stride = 2});
    for (std::size_t i = 0; i < second.size(); i++)
        REQUIRE(second[i] == Approx(both[second.size() + i]).margin(1e-5));
    model.set_training(false);
    const Values evaluated = logits_of(device, model, batch_of(device, two_pairs, 4));
    REQUIRE(evaluated != both);
    REQUIRE(evaluated == logits_of(device, model, batch_of(device, two_pairs, 4)));
}

TEST_CASE("transformer: its parts can be timed, and the gradients stay the same bits") {
    Device device;
    std::vector<Values> gradients;
    StepTimes times(device.stream());
    PartTimes parts(times);
    for (const bool is_timed : {false, true}) {
        Random random(3);
        const DropoutMasks masks(1);
        Transformer model(device, tiny, random, masks);
        if (is_timed)
            model.observe(
                [&](Variable x, const std::string& part) { return parts.end_of(x, part); });
        Tape tape(device);
        parts.begin();
        const Variable logits = forward_of(model, tape, batch_of(device, two_pairs, 4));
        const Variable loss = token_loss(logits, Labels(device, {8}, two_targets), 0.1, 7);
        parts.end_of_forward("loss");
        tape.backward(loss);
        parts.end_of_backward();
        gradients.emplace_back();
        for (const auto& parameter : model.parameters()) {
            const Values gradient = parameter->gradient().to_host();
            gradients.back().insert(gradients.back().end(), gradient.begin(), gradient.end());
        }
    }
    times.end();
    REQUIRE(gradients[0] == gradients[1]);
    std::vector<std::string> forward, backward;
    for (const StepTimes::Part& part : times.parts())
        (part.name.starts_with("forward ") ? forward : backward)
            .push_back(part.name.substr(part.name.find(' ') + 1));
    // The model without a clock has marked the loss alone.
    REQUIRE(forward == std::vector<std::string>{"loss", "source", "encoder layer 0", "encoder norm",
                                                "target", "decoder layer 0", "decoder norm",
                                                "scores"});
    REQUIRE(backward == std::vector<std::string>{"loss", "scores", "decoder norm",
                                                 "decoder layer 0", "target", "encoder norm",
                                                 "encoder layer 0", "source"});
}

TEST_CASE("transformer: what makes no sense is refused") {
    Device device;
    Random random(3);
    const DropoutMasks masks(1);
    TransformerOptions options = tiny;
    options.layers = 0;
    REQUIRE_THAT(message_of([&] { Transformer(device, options, random, masks); }),
                 Catch::Matchers::StartsWith("a transformer needs a vocabulary"));
    Transformer model(device, tiny, random, masks);
    Tape tape(device);
    REQUIRE(message_of([&] {
                model.forward(tape, Tokens(device, {2, 4}), Tokens(device, {3, 4}));
            }) == "the transformer takes two tensors [sentences, length], not [2, 4] and [3, 4]");
    REQUIRE_THAT(message_of([&] { forward_of(model, tape, batch_of(device, two_pairs, 13)); }),
                 Catch::Matchers::StartsWith("source_embedding knows 12 positions"));
}

}  // namespace ddp::test
