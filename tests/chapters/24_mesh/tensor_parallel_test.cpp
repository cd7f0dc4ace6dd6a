// A matrix in parts against the whole one, and several ranks against one rank that has all parts.
#include <algorithm>
#include <cmath>

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "11_data_parallel/replica.hpp"
#include "20_transformer/token_loss.hpp"
#include "24_mesh/parallel_model.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr std::size_t most_elements = 4096;

// Runs `work` on as many ranks, each with one part. Returns what each rank returns.
template <class Work>
auto on_ranks(int parts, const Work& work) {
    World world(thread_options(parts));
    std::vector<decltype(work(std::declval<TensorParallel&>(), std::declval<Device&>()))> results(
        static_cast<std::size_t>(parts));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto ranks =
            make_communicator("native", rank, TensorParallel::arena_bytes(most_elements));
        TensorParallel parallel(*ranks, most_elements);
        results[static_cast<std::size_t>(rank.rank())] = work(parallel, device);
        rank.barrier();
    });
    REQUIRE(failure == "");
    return results;
}

double largest_difference(const Values& a, const Values& b) {
    double largest = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < a.size(); i++)
        largest = std::max(largest, std::abs(double{a[i]} - b[i]));
    return largest;
}

// ---- The two conjugate operations

// The number by which part `part` multiplies element i: another one for each.
float factor(int part, std::size_t i) {
    return 1.0f + 0.37f * static_cast<float>(part) + static_cast<float>(i) / 173.0f;
}

// Each part multiplies x by its own factors. Returns the sum y, the gradient of x, and the gradient
// that each part gets.
std::vector<Values> conjugates_of(TensorParallel& parallel, Device& device, std::size_t size) {
    Tape tape(device);
    const Shape shape{static_cast<int>(size)};
    const auto x =
        std::make_shared<Parameter>("x", Tensor(device, shape, distinct_values(size, 3)));
    PartVariables parts = to_parts(parallel, tape.parameter(x), "test");
    std::vector<Values> result(2 + parts.size());
    for (std::size_t p = 0; p < parts.size(); p++) {
        const auto times = [part = parallel.first() + static_cast<int>(p)](Values values) {
            for (std::size_t i = 0; i < values.size(); i++)
                values[i] *= factor(part, i);
            return values;
        };
        parts[p] = tape.record("times", Tensor(device, shape, times(parts[p].value().to_host())),
                               {parts[p]}, [&, times, p](const Tensor& dy, auto& inputs) {
                                   result[2 + p] = dy.to_host();
                                   inputs.target(0).tensor.copy_from(times(result[2 + p]));
                               });
    }
    const Variable y = sum_of_parts(parallel, parts, "test");
    tape.backward(weighted_sum(y, random_weights(size)));
    result[0] = y.value().to_host();
    result[1] = x->gradient().to_host();
    return result;
}

}  // namespace

TEST_CASE("tensor parallel: the two sums, on several ranks and on one, to the bit") {
    for (const int parts : {1, 2, 4})
        for (const std::size_t size : {1, 7, 37, 1003}) {
            CAPTURE(parts, size);
            Device device(test_memory);
            TensorParallel all_here(parts);
            const auto one = conjugates_of(all_here, device, size);
            Values y(size), dx(size);
            for (int p = 0; p < parts; p++)
                for (std::size_t i = 0; i < size; i++) {
                    y[i] += distinct_values(size, 3)[i] * factor(p, i);
                    dx[i] += random_weights(size)[i] * factor(p, i);
                }
            REQUIRE(largest_difference(one[0], y) < 1e-4);
            REQUIRE(largest_difference(one[1], dx) < 1e-4);
            for (const auto& rank :
                 on_ranks(parts, [&](auto&... all) { return conjugates_of(all..., size); }))
                REQUIRE(rank == std::vector<Values>{one[0], one[1], random_weights(size)});
            for (std::size_t p = 2; p < one.size(); p++)
                REQUIRE(one[p] == random_weights(size));
        }
}

// ---- Two linear layers

TEST_CASE("tensor parallel: two linear layers in parts are whole matrices, forward and backward") {
    constexpr int rows = 3, inputs = 20, hidden = 12, outputs = 7;
    const Values weights = random_weights(rows * outputs);
    const auto make_x = [](Device& device) {
        return std::make_shared<Parameter>(
            "x", Tensor(device, {rows, inputs}, distinct_values(rows * inputs, 2)));
    };
    Device host(test_memory);
    Random random(5);
    Linear first("W1", host, inputs, hidden, random, false);
    Linear second("W2", host, hidden, outputs, random, false);
    const auto whole_x = make_x(host);
    Tape whole(host);
    const Variable expected =
        second.forward(Relu("relu").forward(first.forward(whole.parameter(whole_x))));
    whole.backward(weighted_sum(expected, weights));
    const Values dw1 = first.weight->gradient().to_host();
    for (const int parts : {1, 2, 4}) {
        // y, the gradient of x, and that of this rank's rows of W1.
        const auto results = on_ranks(parts, [&](TensorParallel& parallel, Device& device) {
            Random own(5);
            ColumnParallelLinear column(parallel, "W1", device, inputs, hidden, own);
            RowParallelLinear row(parallel, "W2", device, hidden, outputs, own);
            const auto x = make_x(device);
            Tape tape(device);
            const PartVariables xs = to_parts(parallel, tape.parameter(x), "x");
            const Variable y = row.forward({Relu("relu").forward(column.forward(xs)[0])});
            tape.backward(weighted_sum(y, weights));
            Parameters own_parts;
            column.append_to(own_parts);
            return std::vector<Values>{y.value().to_host(), x->gradient().to_host(),
                                       own_parts[0]->gradient().to_host()};
        });
        Values joined;
        for (const auto& rank : results) {
            REQUIRE(largest_difference(rank[0], expected.value().to_host()) < 1e-5);
            REQUIRE(largest_difference(rank[1], whole_x->gradient().to_host()) < 1e-5);
            joined.insert(joined.end(), rank[2].begin(), rank[2].end());
        }
        REQUIRE(largest_difference(joined, dw1) < 1e-5);
    }
}

// ---- The vocabulary

namespace {

constexpr int vocabulary = 12;  // 4 parts of 3

// Returns the loss, and behind it the gradient of the whole scores [rows, vocabulary], with zeros
// for other ranks' parts. The `whole` loss is that of one rank with one part. (token_loss would
// take token 0 for padding.)
Values loss_of(TensorParallel& parallel, Device& device, const std::vector<int>& targets,
               bool whole = false) {
    const int rows = static_cast<int>(targets.size()), width = vocabulary / parallel.parts();
    const Values scores = distinct_values(targets.size() * vocabulary, 90);
    Tape tape(device);
    Parameters own;
    PartVariables parts;
    for (int p = parallel.first(); p < parallel.first() + parallel.here(); p++) {
        Values values;
        for (int row = 0; row < rows; row++) {
            const auto from = scores.begin() + row * vocabulary + p * width;
            values.insert(values.end(), from, from + width);
        }
        own.push_back(std::make_shared<Parameter>("scores", Tensor(device, {rows, width}, values)));
        parts.push_back(tape.parameter(own.back()));
    }
    const Labels labels(device, {rows}, targets);
    const Variable loss = !whole ? vocabulary_parallel_loss(parallel, parts, labels)
                          : std::ranges::count(targets, 0) > 0
                              ? cross_entropy(parts[0], labels)
                              : token_loss(parts[0], labels, 0, rows);
    tape.backward(loss, {}, 0.5f);
    Values result(1 + scores.size());
    result[0] = loss.value().to_host()[0];
    for (std::size_t p = 0; p < own.size(); p++) {
        const Values part = own[p]->gradient().to_host();
        const int column = (parallel.first() + static_cast<int>(p)) * width;
        for (int row = 0; row < rows; row++)
            std::copy_n(part.begin() + row * width, width,
                        result.begin() + 1 + row * vocabulary + column);
    }
    return result;
}

}  // namespace

TEST_CASE("vocabulary: the loss in parts is that of all scores, wherever the target lies") {
    Device device(test_memory);
    TensorParallel one_part(1);
    for (const std::vector<int>& targets :
         std::vector<std::vector<int>>{{11}, {2, 3, 5, 6, 8, 9}, {1, 11, 4, 4, 7}, {0, 11, 0}}) {
        const Values whole = loss_of(one_part, device, targets, true);
        for (const int parts : {1, 2, 3, 4}) {
            CAPTURE(parts, targets);
            TensorParallel all_here(parts);
            const Values one = loss_of(all_here, device, targets);
            REQUIRE(one[0] == Approx(whole[0]).epsilon(1e-6));
            Values joined{one[0]}, expected{one[0]};
            joined.resize(one.size());
            expected.insert(expected.end(), whole.begin() + 1, whole.end());
            REQUIRE(largest_difference(one, expected) < 1e-6);
            for (const Values& each :
                 on_ranks(parts, [&](auto&... all) { return loss_of(all..., targets); })) {
                REQUIRE(each[0] == one[0]);
                for (std::size_t i = 1; i < each.size(); i++)
                    joined[i] += each[i];
            }
            REQUIRE(joined == one);
        }
    }
}

TEST_CASE("tensor parallel: what cannot be divided, in one sentence") {
    Device device(test_memory);
    const auto model = [&](int parts, int stages, const LanguageModelOptions& options) {
        return message_of([&] {
            TensorParallel parallel(parts);
            ParallelModel(parallel, device, options, 0, stages, 1);
        });
    };
    REQUIRE(model(4, 4, {}) == "");
    for (const int parts : {0, 9})
        REQUIRE(model(parts, 1, {}) ==
                "a matrix is cut into 1 to 8 parts, not " + std::to_string(parts));
    REQUIRE(model(4, 1, {.vocabulary = 30}) ==
            "embedding has 30 rows or columns, which cannot be cut into 4 equal parts");
    REQUIRE(model(4, 1, {.feed_forward = 26}) ==
            "block0.up has 26 rows or columns, which cannot be cut into 4 equal parts");
    REQUIRE(model(4, 1, {.width = 24, .heads = 6}) == "6 heads cannot be dealt out to 4 parts");
    REQUIRE(model(1, 3, {}) == "4 blocks cannot be dealt out to 3 stages");
}

}  // namespace ddp::test
