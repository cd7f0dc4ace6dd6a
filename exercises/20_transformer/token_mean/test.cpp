// The exercise token_mean: what each token weighs, and the gradient of a real step of
// DistributedDataParallel beside that of one rank with all tokens.
#include "10_nodes/make_communicator.hpp"
#include "exercises/20_transformer/token_mean.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "03_network/linear.hpp"
#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Tokens = std::vector<std::vector<int>>;  // [rank][micro-batch]

int ranks_of(const Tokens& tokens) {
    return static_cast<int>(tokens.size());
}
double all_of(const Tokens& tokens) {
    double all = 0;
    for (const std::vector<int>& of_rank : tokens)
        for (const int in_batch : of_rank)
            all += in_batch;
    return all;
}
std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}
std::string text_of(const Tokens& tokens) {
    std::string text = "Ranks with micro-batches of ";
    for (const std::vector<int>& of_rank : tokens) {
        text += &of_rank == &tokens[0] ? "(" : ", (";
        for (std::size_t i = 0; i < of_rank.size(); i++)
            text += (i == 0 ? "" : ", ") + std::to_string(of_rank[i]);
        text += ")";
    }
    return text + " tokens: ";
}
bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::abs(right);
}

// ---- A real step

constexpr int inputs = 3, vocabulary = 5;
constexpr std::size_t device_memory = 4 << 20;

// One number of a gradient, made by a token of a place in the step: no two are alike.
float input_of(int rank, std::size_t batch, int token, int i) {
    return static_cast<float>((rank * 131 + static_cast<int>(batch) * 37 + token * 11 + i * 5) %
                              17) /
               8 -
           1;
}

// Forward and backward of a micro-batch with one token of padding behind the others.
struct Learner {
    explicit Learner(Device& device) : device(device) {}

    Linear make_model() {
        Random random(7);
        return {"scores", device, inputs, vocabulary, random};
    }
    void add(int rank, std::size_t batch, int tokens) {
        for (int t = 0; t < tokens; t++) {
            for (int i = 0; i < inputs; i++)
                x.push_back(input_of(rank, batch, t, i));
            target.push_back(1 + (rank + t) % (vocabulary - 1));
        }
    }
    void add_padding() {
        x.insert(x.end(), inputs, 1);
        target.push_back(pad_token);
    }
    // Returns the loss of all that has been added.
    Variable loss(Tape& tape, const std::function<Variable(Variable)>& forward, double divisor) {
        const int rows = static_cast<int>(target.size());
        const Variable scores = forward(tape.constant(Tensor(device, {rows, inputs}, x)));
        return token_loss(scores, Labels(device, {rows}, target), 0.1, divisor);
    }

    Device& device;
    std::vector<float> x;
    std::vector<int> target;
};

// Checks that rank 0's gradient, times `factor`, is that of one rank with all tokens.
void check_step(const Tokens& tokens, const std::vector<std::vector<double>>& divisors,
                double factor) {
    on_ranks(ranks_of(tokens), [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, device_memory);
        Linear model = Learner(device).make_model(), whole = Learner(device).make_model();
        const auto communicator =
            make_communicator("native", rank, ddp_arena_bytes(model) + (1 << 16));
        Tape tape(device);
        Learner all(device);
        for (int r = 0; r < ranks_of(tokens); r++)
            for (std::size_t b = 0; b < tokens[static_cast<std::size_t>(r)].size(); b++)
                all.add(r, b, tokens[static_cast<std::size_t>(r)][b]);
        tape.backward(all.loss(
            tape, [&](Variable x) { return whole.forward(x); }, all_of(tokens)));
        tape.clear();
        DistributedDataParallel ddp(*communicator, device, model);
        const auto mine = static_cast<std::size_t>(rank.rank());
        for (std::size_t b = 0; b < tokens[mine].size(); b++) {
            std::optional<DistributedDataParallel::NoSync> quiet;
            if (b + 1 < tokens[mine].size())
                quiet.emplace(ddp);
            Learner one(device);
            one.add(rank.rank(), b, tokens[mine][b]);
            one.add_padding();
            ddp.backward(one.loss(
                tape, [&](Variable x) { return ddp.forward(x); }, divisors[mine][b]));
            tape.clear();
        }
        communicator->synchronize(device.stream());
        const std::vector<float> yours = model.weight->gradient().to_host(),
                                 right = whole.weight->gradient().to_host();
        std::string wrong;
        for (std::size_t i = 0; i < right.size() && wrong.empty(); i++)
            if (!(std::abs(double{yours[i]} * factor - double{right[i]}) <= 1e-5))
                wrong = text_of(tokens) + "after a step of DistributedDataParallel element " +
                        std::to_string(i) + " of the gradient is " +
                        number(double{yours[i]} * factor) + ", and one rank with all tokens has " +
                        number(double{right[i]}) + ".";
        throw_first_wrong(rank, wrong);
    });
    held();
}

// ---- Task skew

// Returns what a wrong skew tells, or "".
std::string cause_of_skew(const Tokens& tokens, double yours) {
    double least = INFINITY, most = 0, least_rank = INFINITY, most_rank = 0;
    std::size_t batches = 0, fewest = tokens[0].size();
    for (const std::vector<int>& of_rank : tokens) {
        double sum = 0;
        batches = std::max(batches, of_rank.size());
        fewest = std::min(fewest, of_rank.size());
        for (const int in_batch : of_rank) {
            sum += in_batch;
            least = std::min(least, double{1} * in_batch);
            most = std::max(most, double{1} * in_batch);
        }
        least_rank = std::min(least_rank, sum);
        most_rank = std::max(most_rank, sum);
    }
    if (batches != fewest && is_near(yours, most / least))
        return "A rank with fewer micro-batches divides by fewer: its tokens weigh more.\n";
    if (is_near(yours, most_rank / least_rank))
        return "You compare the ranks' numbers of tokens. But a mean is taken over a "
               "micro-batch.\n";
    if (yours > 0 && yours < 1)
        return "The heaviest beside the lightest is 1 or more: a token of a small micro-batch "
               "weighs most.\n";
    if (yours == std::floor(yours))
        return "Yours is a whole number: int divided by int drops the rest in C++.\n";
    return "";
}

void check_skew_of(const Tokens& tokens, double right, const std::string& hint) {
    const double yours = weight_skew(tokens);
    if (!is_near(yours, right))
        throw Wrong(text_of(tokens) + "you say that the heaviest token weighs " + number(yours) +
                    " times as much as the lightest; right is " + number(right) + ".\n" +
                    cause_of_skew(tokens, yours) + hint);
    held();
}

void check_skew() {
    check_skew_of({{6}, {6}}, 1, "All weigh the same here.");
    check_skew_of(
        {{12}, {5}}, 12.0 / 5,
        "A token of n weighs 1 / n in the mean of its micro-batch, and then the mean over "
        "the ranks is taken.");
    check_skew_of({{4, 10}, {8, 6}}, 10.0 / 4, "There are two micro-batches on each rank.");
    check_skew_of({{6, 6, 6}, {6}}, 3,
                  "The ranks have other numbers of micro-batches, and each divides by its own.");
    check_skew_of({{7, 2, 9}, {3}, {11}}, 27.0 / 3, "All of it is at work here.");
}

// ---- Task divisors

// Returns what a wrong divisor tells, or "".
std::string cause_of_divisor(const Tokens& tokens, std::size_t rank, std::size_t batch,
                             double yours) {
    const double all = all_of(tokens), world = ranks_of(tokens),
                 batches = static_cast<double>(tokens[rank].size());
    double own = 0;
    for (const int in_batch : tokens[rank])
        own += in_batch;
    const double in_batch = tokens[rank][batch];
    if (is_near(yours, all))
        return "You divide by all tokens, and then DDP divides by the number of ranks once more.\n";
    if (is_near(yours, own))
        return "That is the rank's own mean: a token of a rank with few tokens weighs more.\n";
    if (is_near(yours, in_batch) || is_near(yours, in_batch * batches))
        return "That is the micro-batch's own mean: a token of a short one weighs more.\n";
    if (is_near(yours, own * world) || is_near(yours, own / world))
        return "These are the rank's own tokens; what of the other ranks'?\n";
    if (is_near(yours, all / world * batches) || is_near(yours, all / world / batches))
        return "The number of micro-batches has no part in it: gradients of micro-batches are "
               "added, and not averaged.\n";
    if (is_near(yours, all * world))
        return "DDP divides by the number of ranks, so the divisor need not do it again: it has to "
               "undo it.\n";
    if (is_near(yours, std::floor(all / world)))
        return "A whole number divided by a whole number drops the rest in C++.\n";
    return "";
}

void check_divisors_of(const Tokens& tokens, const std::string& hint) {
    const int ranks = ranks_of(tokens);
    const auto divisors = with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum_over_ranks) {
        return token_divisors(tokens[static_cast<std::size_t>(rank)], ranks, sum_over_ranks);
    });
    const double all = all_of(tokens), right = all / ranks;
    for (std::size_t rank = 0; rank < tokens.size(); rank++) {
        if (divisors[rank].size() != tokens[rank].size())
            throw Wrong(text_of(tokens) + "rank " + std::to_string(rank) + " has " +
                        std::to_string(tokens[rank].size()) + " micro-batches, and you give it " +
                        std::to_string(divisors[rank].size()) +
                        " divisors: one for each, also for one without tokens.");
        for (std::size_t i = 0; i < tokens[rank].size(); i++) {
            const double yours = divisors[rank][i];
            const std::string said = text_of(tokens) + "for micro-batch " + std::to_string(i) +
                                     " of rank " + std::to_string(rank) + " you say " +
                                     number(yours);
            if (!(yours > 0) || !std::isfinite(yours))
                throw Wrong(said +
                            ". A divisor is a positive number: with another one token_loss throws, "
                            "and nothing divided by nothing is NaN.\n" +
                            hint);
            if (tokens[rank][i] > 0 && !is_near(yours, right))
                throw Wrong(said + ", right is " + number(right) + ": with yours a token weighs " +
                            number(1 / (yours * ranks)) +
                            " in the averaged gradient, and it should weigh " + number(1 / all) +
                            ".\n" + cause_of_divisor(tokens, rank, i, yours) + hint);
        }
    }
    held();
    if (ranks > 1)
        check_step(tokens, divisors, 1);
}

void check_divisors() {
    check_divisors_of({{7}}, "There is one rank with one micro-batch.");
    check_divisors_of({{3, 9}}, "There is one rank: its two micro-batches are one batch.");
    check_divisors_of({{5}, {2}}, "One micro-batch on each of two ranks.");
    check_divisors_of({{5, 3}, {2, 11}}, "Two micro-batches on each of two ranks.");
    check_divisors_of({{5, 3, 8}, {2}, {4, 9}}, "Ranks have other numbers of micro-batches.");
    check_divisors_of({{0, 0}, {3, 4}, {1, 1}},
                      "A rank has no token at all. It takes part nevertheless, with zeros.");
}

// ---- Task afterwards

// Returns what a wrong factor tells, or "".
std::string cause_of_factor(const Tokens& tokens, double guess, std::size_t rank, double yours) {
    const double all = all_of(tokens), world = ranks_of(tokens);
    double own = 0;
    for (const int in_batch : tokens[rank])
        own += in_batch;
    if (is_near(yours, world / all))
        return "The losses have been divided by the guess already: that has to be undone.\n";
    if (is_near(yours, guess / all))
        return "DDP has divided by the number of ranks, too.\n";
    if (is_near(yours, all / (guess * world)))
        return "That is the inverse: the gradient is multiplied by your factor.\n";
    if (is_near(yours, guess / own) || is_near(yours, guess * world / own))
        return "With a rank's own tokens the factor is another one on each rank, and then the "
               "replicas drift apart.\n";
    return "";
}

void check_late_of(const Tokens& tokens, double guess, const std::string& hint) {
    const int ranks = ranks_of(tokens);
    const std::vector<double> factors =
        with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum_over_ranks) {
            return late_factor(tokens[static_cast<std::size_t>(rank)], guess, ranks,
                               sum_over_ranks);
        });
    const double all = all_of(tokens);
    for (std::size_t rank = 0; rank < tokens.size(); rank++) {
        const std::string said = text_of(tokens) + "after a guess of " + number(guess) + " rank " +
                                 std::to_string(rank) + " says " + number(factors[rank]);
        if (!is_near(factors[rank], guess * ranks / all))
            throw Wrong(said + ", right is " + number(guess * ranks / all) + ".\n" +
                        cause_of_factor(tokens, guess, rank, factors[rank]) + hint);
    }
    held();
    std::vector<std::vector<double>> divisors;
    for (const std::vector<int>& of_rank : tokens)
        divisors.emplace_back(of_rank.size(), guess);
    check_step(tokens, divisors, factors[0]);
}

void check_afterwards() {
    check_late_of({{4}, {4}}, 4, "The guess was right here: nothing has to be changed.");
    check_late_of({{5}, {2}}, 1, "The losses are sums: they were divided by 1.");
    check_late_of({{5, 3}, {2, 11}}, 2.5, "Two micro-batches on each of two ranks.");
    check_late_of({{6, 0, 1}, {0}, {4, 4}}, 3, "A rank has no token at all.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"skew", check_skew}, {"divisors", check_divisors}, {"afterwards", check_afterwards}};
}

}  // namespace ddp::test
