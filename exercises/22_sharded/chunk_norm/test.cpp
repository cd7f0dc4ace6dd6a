// The exercise chunk_norm: chunks with padding that is not a number, ranks without gradients, and
// sums whose bits depend on their order.
#include "exercises/22_sharded/chunk_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// A gradient that tells its place; roots and squares of these are no round numbers.
float gradient_at(std::size_t i) {
    return 0.1f + 0.37f * static_cast<float>(i * 7 % 11) - 0.02f * static_cast<float>(i % 5);
}
double square(float x) {
    return double{x} * double{x};
}
std::string text(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", number);
    return digits;
}

// ---- Task global_norm

using ByRank = std::vector<RankGradients>;

// `sharded` gradients in chunks of one length with NaN as padding, and `whole` on every rank.
ByRank made(int ranks, std::size_t sharded, std::size_t whole) {
    const auto n = static_cast<std::size_t>(ranks), length = (sharded + n - 1) / n;
    ByRank all(n);
    for (std::size_t r = 0; r < n; r++) {
        all[r].own = std::min(length, sharded - std::min(sharded, r * length));
        all[r].chunk.assign(length, std::numeric_limits<float>::quiet_NaN());
        for (std::size_t i = 0; i < all[r].own; i++)
            all[r].chunk[i] = gradient_at(r * length + i);
        for (std::size_t i = 0; i < whole; i++)
            all[r].whole.push_back(gradient_at(1000 + i));
    }
    return all;
}

struct Squares {
    double sharded = 0, whole = 0;
    double norms = 0;  // the sum of the ranks' own norms
};
Squares squares_of(const ByRank& all) {
    Squares squares;
    for (const float gradient : all[0].whole)
        squares.whole += square(gradient);
    for (const RankGradients& gradients : all) {
        double own = 0;
        for (std::size_t i = 0; i < gradients.own; i++)
            own += square(gradients.chunk[i]);
        squares.sharded += own;
        squares.norms += std::sqrt(own);
    }
    return squares;
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-6 * (1 + std::abs(right));
}
// Accepts sums of doubles in any order. No sum in floats is so near.
bool is_right(double yours, double right) {
    return std::abs(yours - right) <= 1e-12 * right;
}
const std::string in_floats =
    "That's right to a few digits only: something in it is a float. Add doubles.\n";

// Returns what a wrong norm tells, or "".
std::string cause_of(double yours, const Squares& squares, double ranks) {
    if (std::isnan(yours))
        return "After `own` elements of a chunk comes padding. Here it's NaN.\n";
    if (const double right = std::sqrt(squares.sharded + squares.whole);
        std::abs(yours - right) <= 1e-6 * right)
        return in_floats;
    if (is_near(yours * yours, squares.sharded + ranks * squares.whole))
        return "The gradients that every rank has count once, and not once per rank.\n";
    if (is_near(yours * yours, squares.sharded))
        return "You have left out the gradients that are not sharded.\n";
    if (is_near(yours, squares.sharded + squares.whole))
        return "That's the sum of squares. The norm is its root.\n";
    if (is_near(yours, squares.norms + std::sqrt(squares.whole)) ||
        is_near(yours * yours, squares.norms + squares.whole))
        return "Norms don't add up, but squares do. Take the root after the sum.\n";
    return "";
}

void check_global_norm() {
    for (const int ranks : {1, 2, 3, 5})
        for (const auto& [sharded, whole] : {std::pair{23, 4}, {6, 0}, {4, 3}}) {
            const std::string what = std::to_string(ranks) + " ranks, " + std::to_string(sharded) +
                                     " gradients in chunks, " + std::to_string(whole) +
                                     " on every rank";
            trying(what + ".");
            const ByRank all =
                made(ranks, static_cast<std::size_t>(sharded), static_cast<std::size_t>(whole));
            const Squares squares = squares_of(all);
            const double right = std::sqrt(squares.sharded + squares.whole);
            const auto found =
                with_one_sum(ranks, 1, [&](int rank, const SumOverRanks& sum_over_ranks) {
                    return global_norm(all[static_cast<std::size_t>(rank)], sum_over_ranks);
                });
            for (std::size_t rank = 0; rank < found.size(); rank++)
                if (!is_right(found[rank], right))
                    throw Wrong(what + ": rank " + std::to_string(rank) + " says " +
                                text(found[rank]) + "; right is " + text(right) + ".\n" +
                                cause_of(found[rank], squares, ranks));
            held();
        }
}

// ---- Task clip

void check_clip() {
    for (const auto& [norm, max_norm] :
         {std::pair{8.0, 2.0}, {2.0, 8.0}, {5.0, 5.0}, {1e-5, 1e-6}}) {
        const RankGradients before{{3, -1, 0.5f, 7}, 3, {2, -4}};
        RankGradients after = before;
        clip(after, norm, max_norm);
        const double factor = std::min(1.0, max_norm / (norm + 1e-6));
        const auto require = [&](float found, float was, const std::string& which) {
            if (std::abs(found - factor * was) <= 1e-5 * std::abs(was) * factor)
                return;
            const double yours = double{found} / was;
            throw Wrong("The norm is " + text(norm) + ", and should be " + text(max_norm) +
                        " at most" + ": you multiply a gradient " + which + " by " +
                        std::to_string(yours) + "; right is " + std::to_string(factor) + ".\n" +
                        (yours > 1 && max_norm > norm
                             ? "Leave gradients alone that are short enough."
                         : is_near(yours, max_norm / norm) ? "PyTorch adds 1e-6 to the norm."
                         : yours == 1 ? "Clip both kinds of gradients, by the same factor."
                                      : ""));
        };
        for (std::size_t i = 0; i < before.own; i++)
            require(after.chunk[i], before.chunk[i], "of the chunk");
        for (std::size_t i = 0; i < before.whole.size(); i++)
            require(after.whole[i], before.whole[i], "that every rank has");
        held();
    }
}

// ---- Task same_bits

std::vector<double> norms_of(int ranks, std::size_t count) {
    const std::size_t blocks = (count + norm_block - 1) / norm_block;
    const auto n = static_cast<std::size_t>(ranks);
    const std::size_t length = (blocks + n - 1) / n * norm_block;
    return with_one_sum(ranks, blocks, [&](int rank, const SumOverRanks& sum_over_ranks) {
        const std::size_t begin =
            std::min(static_cast<std::size_t>(rank) * length, blocks * norm_block);
        std::vector<float> chunk;
        for (std::size_t i = begin; i < std::min(count, begin + length); i++)
            chunk.push_back(gradient_at(i * i));
        return norm_by_blocks(chunk, begin, count, sum_over_ranks);
    });
}

void check_same_bits() {
    for (const std::size_t count : {1000, 64, 5000, 37}) {
        double squares = 0, of_one_rank = 0;
        for (std::size_t i = 0; i < count; i++)
            squares += square(gradient_at(i * i));
        for (const int ranks : {1, 2, 3, 4, 7}) {
            const std::string what =
                std::to_string(count) + " gradients, " + std::to_string(ranks) + " ranks";
            trying(what + ".");
            const std::vector<double> found = norms_of(ranks, count);
            for (std::size_t rank = 0; rank < found.size(); rank++) {
                const std::string yours =
                    what + ": rank " + std::to_string(rank) + " says " + text(found[rank]);
                if (!is_right(found[rank], std::sqrt(squares)))
                    throw Wrong(yours + "; right is " + text(std::sqrt(squares)) + ".\n" +
                                "chunk[i] belongs to block (begin + i) / norm_block of the "
                                "model. The last block may be shorter.");
                if (ranks == 1)
                    of_one_rank = found[rank];
                else if (found[rank] != of_one_rank)
                    throw Wrong(
                        what + ": the norm differs from that of one rank by " +
                        std::to_string(std::abs(found[rank] / of_one_rank - 1) * 1e16) +
                        "e-16 of it.\nThe order of the sum must not depend on where a chunk "
                        "ends: add within each block, and then let every rank add the "
                        "blocks in the order of the model.");
            }
            held();
        }
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {
        {"global_norm", check_global_norm}, {"clip", check_clip}, {"same_bits", check_same_bits}};
}

}  // namespace ddp::test
