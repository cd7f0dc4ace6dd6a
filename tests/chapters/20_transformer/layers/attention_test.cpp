// Attention: backward against finite differences under every mask, what masks let through, and
// sentences and heads that do not divide anything.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "20_transformer/attention.hpp"
#include "20_transformer/layers/batched_matrices.hpp"
#include "20_transformer/layers/long_rows.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

std::shared_ptr<Parameter> rows_of(Device& device, const std::string& name, int rows, int width,
                                   float range) {
    return std::make_shared<Parameter>(
        name, Tensor(device, {rows, width},
                     distinct_values(static_cast<std::size_t>(rows) * width, range)));
}

AttentionMask mask_of(Device& device, const std::vector<int>& lengths, bool is_causal) {
    return {Labels(device, {static_cast<int>(lengths.size())}, lengths), is_causal};
}

// Attention by hand, for one query: which keys it sees, and how much it takes of each.
Values weights_by_hand(const Values& q, const Values& k, int width, int head, int head_width,
                       int query_row, int first_key_row, int seen, int keys) {
    std::vector<double> shares(keys, 0.0);
    double sum = 0;
    for (int key = 0; key < seen; key++) {
        double score = 0;
        for (int c = head * head_width; c < (head + 1) * head_width; c++)
            score += double{q[query_row * width + c]} * k[(first_key_row + key) * width + c];
        sum += shares[key] = std::exp(score / std::sqrt(head_width));
    }
    Values weights;
    for (const double share : shares)
        weights.push_back(static_cast<float>(sum > 0 ? share / sum : 0));
    return weights;
}

// dS = A (dA - sum of A dA), row by row.
Values backward_by_hand(const Values& a, const Values& da, int keys) {
    Values ds;
    for (std::size_t row = 0; row < a.size(); row += static_cast<std::size_t>(keys)) {
        double sum = 0;
        for (int k = 0; k < keys; k++)
            sum += double{a[row + k]} * da[row + k];
        for (int k = 0; k < keys; k++)
            ds.push_back(static_cast<float>(a[row + k] * (da[row + k] - sum)));
    }
    return ds;
}

// Returns NaN if one of them is none.
float largest_difference(const Tensor& tensor, const Values& right) {
    const Values values = tensor.to_host();
    REQUIRE(values.size() == right.size());
    float largest = 0;
    for (std::size_t i = 0; i < values.size(); i++) {
        const float difference = std::abs(values[i] - right[i]);
        if (std::isnan(difference))
            return difference;
        largest = std::max(largest, difference);
    }
    return largest;
}

}  // namespace

TEST_CASE("attention: weights are the softmax of what each query sees") {
    Device device;
    constexpr int sentences = 3, heads = 2, queries = 4, keys = 5, width = 6;
    const std::vector<int> lengths{5, 3, 0};  // the last sentence is all padding
    const auto q = rows_of(device, "q", sentences * queries, width, 3.0f);
    const auto k = rows_of(device, "k", sentences * keys, width, 2.0f);
    for (const bool is_causal : {false, true}) {
        Tape tape(device);
        const Tensor weights = attention_weights(tape.parameter(q), tape.parameter(k),
                                                 mask_of(device, lengths, is_causal), heads)
                                   .value();
        REQUIRE(weights.shape() == Shape{sentences, heads, queries, keys});
        const Values found = weights.to_host(), qs = q->value.to_host(), ks = k->value.to_host();
        std::size_t i = 0;
        for (int sentence = 0; sentence < sentences; sentence++)
            for (int head = 0; head < heads; head++)
                for (int query = 0; query < queries; query++) {
                    const int seen =
                        is_causal ? std::min(query + 1, lengths[sentence]) : lengths[sentence];
                    const Values right =
                        weights_by_hand(qs, ks, width, head, width / heads,
                                        sentence * queries + query, sentence * keys, seen, keys);
                    for (int key = 0; key < keys; key++, i++)
                        REQUIRE(found[i] == Approx(right[key]).epsilon(1e-5));
                }
    }
}

TEST_CASE("attention: the example with numbers in the README") {
    Device device;
    const auto rows = [&](const std::string& name, const Values& values) {
        return std::make_shared<Parameter>(name, Tensor(device, {4, 4}, values));
    };
    // The columns 0 and 1 are the README's head; in the other one token 3 takes most of itself.
    const auto q = rows("q", {1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 2, 0, 1, 1});
    const auto k = rows("k", {2, 0, 0, 2, 0, 2, 2, 0, 1, 1, 1, 1, 0, 0, 2, 2});
    const auto v = rows("v", {10, 0, 1, 0, 0, 10, 2, 0, 5, 5, 3, 0, 0, 0, 4, 0});
    Tape tape(device);
    const Variable weights =
        attention_weights(tape.parameter(q), tape.parameter(k), mask_of(device, {4}, true), 2);
    const Values shares{1, 0, 0, 0, .20f, .80f, 0, 0, .33f, .33f, .33f, 0, .73f, .04f, .18f, .04f,
                        1, 0, 0, 0, .20f, .80f, 0, 0, .33f, .33f, .33f, 0, .14f, .14f, .14f, .58f};
    const Values found = weights.value().to_host();
    REQUIRE(found.size() == shares.size());
    for (std::size_t i = 0; i < shares.size(); i++)
        REQUIRE(found[i] == Approx(shares[i]).margin(0.005));
    const Values taken{10, 0, 1, 0, 1.96f, 8.04f, 1.80f, 0, 5, 5, 2, 0, 8.24f, 1.33f, 3.16f, 0};
    const Values sums = weighted_values(weights, tape.parameter(v)).value().to_host();
    REQUIRE(sums.size() == taken.size());
    for (std::size_t i = 0; i < taken.size(); i++)
        REQUIRE(sums[i] == Approx(taken[i]).margin(0.005));
}

TEST_CASE("attention: huge scores overflow nothing") {
    Device device;
    const auto q = rows_of(device, "q", 4, 2, 300.0f), k = rows_of(device, "k", 4, 2, 300.0f);
    Tape tape(device);
    const Values weights =
        attention_weights(tape.parameter(q), tape.parameter(k), mask_of(device, {4}, false), 1)
            .value()
            .to_host();
    for (int row = 0; row < 4; row++)
        REQUIRE(std::accumulate(&weights[4 * row], &weights[4 * row] + 4, 0.0) == Approx(1));
}

// Rows of which threads have one key more than others, or none, and rows that see nothing.
TEST_CASE("attention: long rows by a block each are those of a thread each") {
    Device device;
    constexpr int width = 2;
    for (const int keys : {1, 5, 31, 32, 33, 100, 300}) {
        const int queries = keys == 300 ? 7 : 3;
        const std::vector<int> lengths{keys, (keys + 1) / 2, 0};
        const auto q = rows_of(device, "q", 3 * queries, width, 3.0f);
        const auto k = rows_of(device, "k", 3 * keys, width, 2.0f);
        for (const bool is_causal : {false, true}) {
            CAPTURE(keys, is_causal);
            const AttentionMask mask = mask_of(device, lengths, is_causal);
            Tape tape(device);
            const Variable by_threads =
                attention_weights(tape.parameter(q), tape.parameter(k), mask, 1);
            const auto matrices = [&](const Tensor& tensor, int rows) {
                return BatchedMatrices{tensor.data(), rows, width, width,
                                       static_cast<long long>(rows) * width};
            };
            const Tensor by_blocks(device, {3, 1, queries, keys});
            multiply_batch(
                device, 3, 1.0f / std::sqrt(static_cast<float>(width)), matrices(q->value, queries),
                transposed(matrices(k->value, keys)),
                {by_blocks.data(), queries, keys, keys, static_cast<long long>(queries) * keys});
            softmax_by_block(by_blocks, mask);
            REQUIRE(largest_difference(by_blocks, by_threads.value().to_host()) <= 1e-6f);
            // A row that sees nothing has zeros only.
            const Values found = by_blocks.to_host();
            REQUIRE(std::count(found.end() - queries * keys, found.end(), 0.0f) == queries * keys);

            const Tensor gradient(device, by_blocks.shape(),
                                  distinct_values(by_blocks.size(), 2.0f));
            const Tensor back(device, by_blocks.shape());
            softmax_backward_by_block(by_blocks, gradient, back);
            REQUIRE(largest_difference(back, backward_by_hand(found, gradient.to_host(), keys)) <=
                    2e-6f);
        }
    }
}

TEST_CASE("attention: backward agrees with finite differences, with each mask") {
    Device device;
    constexpr int sentences = 3, heads = 2, queries = 3, keys = 5, width = 4;
    const Parameters parameters{rows_of(device, "q", sentences * queries, width, 1.0f),
                                rows_of(device, "k", sentences * keys, width, 1.5f),
                                rows_of(device, "v", sentences * keys, width, 2.0f)};
    for (const bool is_causal : {false, true})
        for (const std::vector<int>& lengths : {std::vector<int>{5, 5, 5}, {4, 1, 3}}) {
            CAPTURE(is_causal, lengths);
            const AttentionMask mask = mask_of(device, lengths, is_causal);
            REQUIRE(message_of([&] {
                        require_gradients(device, parameters, [&](Tape& tape) {
                            return weighted_values(
                                attention_weights(tape.parameter(parameters[0]),
                                                  tape.parameter(parameters[1]), mask, heads),
                                tape.parameter(parameters[2]));
                        });
                    }) == "");
            for (const auto& parameter : parameters)
                parameter->clear_gradient();
        }
}

TEST_CASE("attention: the layer's gradients add up where queries, keys and values are one tensor") {
    Device device;
    Random random(1);
    const DropoutMasks masks(1);
    Sequential layers("layers");
    MultiHeadAttention attention(layers, "self_attn", device, 6, 3, 0.0, random, masks);
    Parameters parameters = layers.parameters();
    REQUIRE(parameters.size() == 8);
    const auto x = rows_of(device, "x", 8, 6, 1.0f);
    parameters.push_back(x);
    REQUIRE(message_of([&] {
                require_gradients(device, parameters, [&](Tape& tape) {
                    const Variable tokens = tape.parameter(x);
                    return attention.forward(tokens, tokens, mask_of(device, {4, 2}, true));
                });
            }) == "");
}

TEST_CASE("attention: its weights can be read from the tape") {
    Device device;
    Random random(1);
    const DropoutMasks masks(1);
    Sequential layers("layers");
    MultiHeadAttention attention(layers, "self_attn", device, 6, 3, 0.0, random, masks);
    Tape tape(device);
    const Variable x = tape.parameter(rows_of(device, "x", 8, 6, 1.0f));
    attention.forward(x, x, mask_of(device, {4, 2}, false));
    int found = 0;
    for (const Tape::Node& node : tape.nodes())
        if (node.operation == "self_attn.weights") {
            found++;
            REQUIRE(node.value.shape() == Shape{2, 3, 4, 4});
        }
    REQUIRE(found == 1);
}

TEST_CASE("attention: what does not fit is refused") {
    Device device;
    Random random(1);
    const DropoutMasks masks(1);
    Sequential layers("layers");
    REQUIRE(message_of([&] {
                MultiHeadAttention(layers, "self_attn", device, 6, 4, 0.0, random, masks);
            }) == "a width of 6 cannot be divided among 4 heads: choose a number that divides it");
    Tape tape(device);
    const Variable six = tape.parameter(rows_of(device, "q", 6, 6, 1.0f));
    const Variable five = tape.parameter(rows_of(device, "k", 5, 6, 1.0f));
    REQUIRE_THAT(message_of([&] {
                     attention_weights(six, five, mask_of(device, {2, 2}, false), 2);
                 }),
                 Catch::Matchers::StartsWith("attention takes queries and keys"));
    const BatchedMatrices a{six.value().data(), 2, 3, 3, 0}, b{five.value().data(), 2, 3, 3, 0};
    REQUIRE(message_of([&] { multiply_batch(device, 1, 1.0f, a, b, a); }) ==
            "matrices [2, 3] times [2, 3] do not make [2, 3]");
}

}  // namespace ddp::test
