// The exercise bracketing. A wrong answer is compared with what known mistakes give: of random
// numbers, any two orders have different sums in some element.
#include "exercises/08_reduce/bracketing.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Arrays = std::vector<std::vector<float>>;

// ---- held

std::string text_of_sum(const std::string& left, const std::string& right) {
    const auto bracketed = [](const std::string& sum) {
        return sum.find('+') == std::string::npos ? sum : "(" + sum + ")";
    };
    return bracketed(left) + "+" + bracketed(right);
}

std::string right_held(int rank, int ranks, int root) {
    std::map<int, std::string> sums;
    for (int r = 0; r < ranks; r++)
        sums[r] = "x" + std::to_string(r);
    for (int distance = 1; distance < ranks; distance *= 2)
        for (int first = 0; first + distance < ranks; first += 2 * distance) {
            const auto leader = [&](int half) {
                return root >= half && root < half + distance ? root : half;
            };
            const int left = leader(first), right = leader(first + distance);
            sums[right == root ? right : left] = text_of_sum(sums[left], sums[right]);
        }
    return sums[rank];
}

std::string without_brackets(std::string sum) {
    std::erase_if(sum, [](char c) { return c == '(' || c == ')'; });
    return sum;
}

std::string cause_of_held(const std::string& yours, const std::string& right, int rank, int ranks) {
    if (yours == right_held(rank, ranks, 0))
        return "That is right for root 0. The root leads each group that it is in.";
    const std::string order = without_brackets(yours), right_order = without_brackets(right);
    if (order == right_order)
        return "The order is right, and the brackets are not: one pair around each sum that is "
               "added to another, none around a single number, none around the whole.";
    if (std::ranges::is_permutation(order, right_order))
        return "The lower ranks' sum stands on the left, whoever adds.";
    return "Which is the largest group that rank " + std::to_string(rank) + " leads?";
}

void check_held() {
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int root = 0; root < ranks; root++)
            for (int rank = 0; rank < ranks; rank++) {
                const std::string who = std::to_string(ranks) + " ranks, root " +
                                        std::to_string(root) + ", rank " + std::to_string(rank);
                trying(who + ": held_by() is called.");
                const std::string yours = held_by(rank, ranks, root);
                const std::string right = right_held(rank, ranks, root);
                if (yours != right)
                    throw Wrong(who + ": you say that it has \"" + yours +
                                "\" at the end; it has \"" + right + "\".\n" +
                                cause_of_held(yours, right, rank, ranks));
            }
}

// ---- bits

float tree_of(std::vector<float> sums) {
    for (std::size_t distance = 1; distance < sums.size(); distance *= 2)
        for (std::size_t i = 0; i + distance < sums.size(); i += 2 * distance)
            sums[i] += sums[i + distance];
    return sums[0];
}

float tree_of_halves(std::vector<float> sums) {
    for (std::size_t half = std::bit_ceil(sums.size()) / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half && i + half < sums.size(); i++)
            sums[i] += sums[i + half];
    return sums[0];
}

// Returns what the reader's sums of these columns, one number for each rank, tell of their order.
std::string wrong_order(const Arrays& columns, const std::vector<float>& yours) {
    const auto is_yours = [&](auto sum) { return std::ranges::equal(columns, yours, {}, sum); };
    const auto from_first = [](auto sum) {
        return [sum](const auto& column) {
            return static_cast<float>(std::accumulate(column.begin(), column.end(), sum));
        };
    };
    if (is_yours(tree_of))
        return "";
    const std::string book =
        "The chapter adds " + right_held(0, static_cast<int>(columns[0].size()), 0);
    if (is_yours(from_first(0.0F)))
        return book + ". Yours has the bits of a sum from the first array to the last.";
    if (is_yours(from_first(0.0)))
        return book + ", and each of these sums is a float. Do you add in double?";
    if (is_yours(tree_of_halves))
        return book + ". Yours adds the upper half to the lower half, as chapter 02's kernels do.";
    return book + ". Yours has other bits: neighbours first, then neighbouring pairs.";
}

void check_bits() {
    std::minstd_rand random;
    std::cauchy_distribution<float> numbers;  // of all sizes
    for (int ranks = 1; ranks <= max_told_apart; ranks++)
        for (const std::size_t count : {37U, 0U}) {
            Arrays shares, arrays, columns(count);
            for (int rank = 0; rank < ranks; rank++) {
                shares.emplace_back(count, share_that_tells(rank));
                arrays.emplace_back(count);
                std::ranges::generate(arrays.back(), [&] { return numbers(random); });
                for (std::size_t i = 0; i < count; i++)
                    columns[i].push_back(arrays.back()[i]);
            }
            const std::vector<float> sums = tree_sum(shares), yours = tree_sum(arrays);
            const std::string job = std::to_string(ranks) + " arrays: ";
            if (sums.size() != count || yours.size() != count)
                throw Wrong(job + "your sum must have as many elements as each array.");
            std::string wrong = wrong_shares(sums, ranks, 0);
            if (wrong.empty())
                wrong = wrong_order(columns, yours);
            if (!wrong.empty())
                throw Wrong(job + wrong);
        }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"held", check_held}, {"bits", check_bits}};
}

}  // namespace ddp::test
