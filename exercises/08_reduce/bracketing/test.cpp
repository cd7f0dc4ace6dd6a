// The exercise bracketing. The numbers of task bits tell more than that a sum is wrong: two of them
// are large and take each other away, and the others, which are small, are lost where they are
// added to one of the two. So the sum says which ranks were added before the two met, and all pairs
// of ranks together say in which order everything was added.
#include "exercises/08_reduce/bracketing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr int max_ranks = 8;

// ---- Sums with their brackets

using Set = std::uint64_t;  // of ranks: a bit for each

// A rank's number, or the sum of two others.
struct Sum {
    Set ranks = 0;
    std::shared_ptr<const Sum> left, right;  // null if it is a rank's number
};
using SumPointer = std::shared_ptr<const Sum>;

SumPointer number_of(int rank) {
    return std::make_shared<const Sum>(Sum{Set{1} << rank, nullptr, nullptr});
}
SumPointer sum_of(SumPointer left, SumPointer right) {
    return std::make_shared<const Sum>(Sum{left->ranks | right->ranks, left, right});
}

// Returns the sum of these, neighbours first, then neighbouring pairs, and so on.
SumPointer tree_of(std::vector<SumPointer> terms) {
    for (std::size_t distance = 1; distance < terms.size(); distance *= 2)
        for (std::size_t i = 0; i + distance < terms.size(); i += 2 * distance)
            terms[i] = sum_of(terms[i], terms[i + distance]);
    return terms[0];
}
SumPointer chapters_sum(int ranks) {
    std::vector<SumPointer> terms;
    for (int rank = 0; rank < ranks; rank++)
        terms.push_back(number_of(rank));
    return tree_of(terms);
}
// Returns the sum of a library that numbers the ranks anew, from the root on.
SumPointer renumbered_sum(int ranks, int root) {
    std::vector<SumPointer> terms;
    for (int i = 0; i < ranks; i++)
        terms.push_back(number_of((root + i) % ranks));
    return tree_of(terms);
}
std::string text(const Sum& sum) {
    if (!sum.left)
        return "x" + std::to_string(std::countr_zero(sum.ranks));
    const auto bracketed = [](const Sum& part) {
        return part.left ? "(" + text(part) + ")" : text(part);
    };
    return bracketed(*sum.left) + "+" + bracketed(*sum.right);
}

// Reads the text of a sum, from `at` on. Returns null if it is none.
SumPointer read_sum(const std::string& words, std::size_t& at);
SumPointer read_term(const std::string& words, std::size_t& at) {
    if (at < words.size() && words[at] == '(') {
        const SumPointer sum = read_sum(words, ++at);
        return sum && at < words.size() && words[at++] == ')' ? sum : nullptr;
    }
    if (at + 1 >= words.size() || words[at] != 'x' || words[at + 1] < '0' || words[at + 1] > '9')
        return nullptr;
    int rank = 0;
    for (at++; at < words.size() && words[at] >= '0' && words[at] <= '9' && rank < 100; at++)
        rank = 10 * rank + words[at] - '0';
    return rank < 64 ? number_of(rank) : nullptr;
}
SumPointer read_sum(const std::string& words, std::size_t& at) {
    SumPointer sum = read_term(words, at);
    while (sum && at < words.size() && words[at] == '+') {  // from left to right, as C++ does
        const SumPointer next = read_term(words, ++at);
        sum = next ? sum_of(sum, next) : nullptr;
    }
    return sum;
}
SumPointer read_all(const std::string& words) {
    std::size_t at = 0;
    const SumPointer sum = read_sum(words, at);
    return at == words.size() ? sum : nullptr;
}

// Returns the ranks of the smallest sum within `sum` that has both ranks in it.
Set where_they_meet(const Sum& sum, Set both) {
    for (const SumPointer& part : {sum.left, sum.right})
        if (part && (part->ranks & both) == both)
            return where_they_meet(*part, both);
    return sum.ranks;
}

float value(const Sum& sum, const std::vector<float>& numbers) {
    if (!sum.left)
        return numbers[static_cast<std::size_t>(std::countr_zero(sum.ranks))];
    return value(*sum.left, numbers) + value(*sum.right, numbers);
}
bool have_same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
std::string text(float number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(number));
    return digits;
}

// ---- What is said of them

std::string names(Set ranks) {
    std::vector<int> all;
    for (int rank = 0; rank < 64; rank++)
        if ((ranks >> rank & 1U) != 0)
            all.push_back(rank);
    std::string words = all.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < all.size(); i++)
        words += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + std::to_string(all[i]);
    return all.empty() ? "no rank" : words;
}

// "ranks 2 and 3 are added before ranks 0 and 1 come in": how two ranks meet where the sum of the
// two is part of the sum of `together`.
std::string meeting(Set both, Set together) {
    if (together == both)
        return names(both) + " are added to each other before any other rank comes in";
    return names(both) + " are in one sum only when " + names(together & ~both) +
           ((std::popcount(together & ~both)) == 1 ? " is" : " are") + " in it, too";
}

// Returns what is wrong with an order in which the two ranks `both` meet in the sum of `yours`.
std::string wrong_meeting(const Sum& right, Set both, Set yours) {
    return "In the chapter's order " + meeting(both, where_they_meet(right, both)) + ". In yours " +
           meeting(both, yours) + ".";
}

// Returns what is wrong with the first pair of ranks that meets elsewhere, the pairs that meet
// early first; "" if there is none. `yours` says where two ranks meet in the reader's order.
std::string first_wrong_meeting(const Sum& right, const std::function<Set(Set)>& yours) {
    for (int size = 2; size <= std::popcount(right.ranks); size++)
        for (int a = 0; a < 64; a++)
            for (int b = a + 1; b < 64; b++) {
                const Set both = Set{1} << a | Set{1} << b;
                if ((right.ranks & both) != both)
                    continue;
                const Set here = where_they_meet(right, both), there = yours(both);
                if (std::popcount(here) == size && here != there)
                    return wrong_meeting(right, both, there);
            }
    return "";
}

// ---- held

// Returns the sum that the rank has at the end, and whether it leads the groups that are in it.
SumPointer right_held(int rank, int ranks, int root) {
    std::vector<SumPointer> sums;
    for (int r = 0; r < ranks; r++)
        sums.push_back(number_of(r));
    const auto count = static_cast<std::size_t>(ranks);
    for (std::size_t distance = 1; distance < count; distance *= 2)
        for (std::size_t first = 0; first + distance < count; first += 2 * distance) {
            // The two halves' leaders: the root, if it is in the half, or the half's first rank.
            const auto leader = [&](std::size_t half) {
                const auto r = static_cast<std::size_t>(root);
                return r >= half && r < half + distance ? r : half;
            };
            const std::size_t left = leader(first), right = leader(first + distance);
            const bool right_leads = static_cast<int>(right) == root;
            sums[right_leads ? right : left] = sum_of(sums[left], sums[right]);
        }
    return sums[static_cast<std::size_t>(rank)];
}

std::string job(int ranks, int root) {
    return std::to_string(ranks) + (ranks == 1 ? " rank, root " : " ranks, root ") +
           std::to_string(root) + ": ";
}

// Returns what a wrong answer tells of its mistake.
std::string cause_of_held(const std::string& yours, int rank, int ranks, int root) {
    const SumPointer right = right_held(rank, ranks, root);
    if (yours.empty())
        return "It is empty. A rank that adds nothing still has its own number.";
    const SumPointer sum = read_all(yours);
    if (!sum)
        return "Each rank's number is an x and the rank, sums have a + and no blanks around it, "
               "and each bracket that is opened must be closed.";
    if (yours == "(" + text(*right) + ")")
        return "There are no brackets around the whole.";
    if (text(*sum) != yours && sum->ranks == right->ranks &&
        first_wrong_meeting(*right, [&](Set both) { return where_they_meet(*sum, both); }).empty())
        return "The brackets are not those of the contract: one pair around each sum that is added "
               "to another, none around a single number, none around the whole.";
    if (root != 0 && yours == text(*right_held(rank, ranks, 0)))
        return "That is right for root 0. With another root other ranks lead the groups: the root "
               "leads each group that it is in.";
    if (rank == root && yours == text(*renumbered_sum(ranks, root)))
        return "That order begins at the root, as in a library that numbers the ranks anew. In "
               "this book the order of the sum does not depend on the root: neighbours are "
               "added first, and only who does the additions depends on the root.";
    if (yours == "x" + std::to_string(rank))
        return "Rank " + std::to_string(rank) + " leads the group of " + names(right->ranks) +
               ", so it receives the sums of the others.";
    if (sum->ranks != right->ranks)
        return "In yours are " + names(sum->ranks) + ", and the largest group that rank " +
               std::to_string(rank) + " leads has " + names(right->ranks) + ".";
    const std::string wrong =
        first_wrong_meeting(*right, [&](Set both) { return where_they_meet(*sum, both); });
    if (!wrong.empty())
        return wrong;
    return "The additions are the right ones, but the lower ranks' sum stands on the left, whoever "
           "adds.";
}

void check_held_with(int ranks, int root) {
    for (int rank = 0; rank < ranks; rank++) {
        trying(job(ranks, root) + "held_by() is asked for rank " + std::to_string(rank) + ".");
        const std::string yours = held_by(rank, ranks, root);
        const std::string right = text(*right_held(rank, ranks, root));
        if (yours != right)
            throw Wrong(job(ranks, root) + "you say that rank " + std::to_string(rank) + " has \"" +
                        yours + "\" at the end; it has \"" + right + "\".\n" +
                        cause_of_held(yours, rank, ranks, root));
    }
}

void check_held() {
    for (int ranks = 1; ranks <= max_ranks + 3; ranks++)
        for (int root = 0; root < ranks; root++)
            check_held_with(ranks, root);
    held();
}

// ---- bits

using Arrays = std::vector<std::vector<float>>;

std::vector<float> your_sum(const Arrays& arrays) {
    const std::string words = std::to_string(arrays.size()) + " arrays of " +
                              std::to_string(arrays[0].size()) + " elements: ";
    trying(words + "tree_sum() is called.");
    std::vector<float> sum = tree_sum(arrays);
    if (sum.size() != arrays[0].size())
        throw Wrong(words + "your sum has " + std::to_string(sum.size()) +
                    " elements. It has as many as each of the arrays.");
    return sum;
}

// Checks which numbers are in the sum, with those that can be added exactly in any order.
void check_terms(int ranks, std::size_t count) {
    Arrays arrays(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; r++)
        arrays[static_cast<std::size_t>(r)].assign(count, share_that_tells(r));
    const std::string wrong = wrong_shares(your_sum(arrays), ranks, 0);
    if (!wrong.empty())
        throw Wrong(std::to_string(ranks) + " arrays: " + wrong);
}

constexpr float large = 0x1p42F;  // loses up to 2^17, and is exact with it in double

// What is found out of a sum by its bits: where each pair of ranks meets. One element for each
// pair.
struct Probe {
    std::vector<Set> pairs;
    Arrays arrays;
};
Probe probe_of(int ranks) {
    Probe probe{{}, Arrays(static_cast<std::size_t>(ranks))};
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            probe.pairs.push_back(Set{1} << a | Set{1} << b);
            for (int r = 0; r < ranks; r++)
                probe.arrays[static_cast<std::size_t>(r)].push_back(
                    r == a   ? large
                    : r == b ? -large
                             : static_cast<float>(1U << r));
        }
    return probe;
}

// Returns what is wrong with the order in which the reader's sum adds, or "".
std::string wrong_order(const Probe& probe, const std::vector<float>& sums, int ranks) {
    const SumPointer right = chapters_sum(ranks);
    const Set all = (Set{1} << ranks) - 1;
    const auto lost = [&](Set both) -> Set {  // where the two meet, by the bits of the sum
        const auto i =
            static_cast<std::size_t>(std::ranges::find(probe.pairs, both) - probe.pairs.begin());
        const float kept = sums[i];
        return kept >= 0 && kept <= static_cast<float>(all) && kept == std::floor(kept)
                   ? all & ~static_cast<Set>(kept)
                   : 0;
    };
    if (ranks > 2 && std::ranges::all_of(probe.pairs, [&](Set both) { return lost(both) == both; }))
        return "None of your additions has lost anything. Each partial sum is a float: do you add "
               "in double?";
    if (std::ranges::any_of(probe.pairs, [&](Set both) { return lost(both) == 0; }))
        return "No order of additions has the bits of your sum. Do you sort, or add anything "
               "twice?";
    const std::string wrong = first_wrong_meeting(*right, lost);
    return wrong.empty() ? "" : "The chapter adds " + text(*right) + ".\n" + wrong;
}

void check_bits_of(int ranks) {
    const std::string who = std::to_string(ranks) + " arrays: ";
    const Probe probe = probe_of(ranks);
    const std::string wrong = ranks < 2 ? "" : wrong_order(probe, your_sum(probe.arrays), ranks);
    if (!wrong.empty())
        throw Wrong(who + wrong);
    held();
}

void check_bits() {
    for (int ranks = 1; ranks <= max_ranks; ranks++) {
        for (const std::size_t count : {1U, 3U, 37U, 0U})
            check_terms(ranks, count);
        check_bits_of(ranks);
    }
}

// ---- tell_apart

std::string text(const std::vector<float>& numbers) {
    std::string words;
    for (const float number : numbers)
        words += (words.empty() ? "" : ", ") + text(number);
    return words;
}

void check_tell_apart_of(int ranks, int root) {
    const SumPointer chapters = chapters_sum(ranks), other = renumbered_sum(ranks, root);
    const std::string orders = job(ranks, root) + "this book adds " + text(*chapters) +
                               ", and the other library adds " + text(*other) + ". ";
    // Both are the same but for left and right, if all pairs meet in the same sums.
    const std::string difference =
        first_wrong_meeting(*chapters, [&](Set both) { return where_they_meet(*other, both); });
    trying(job(ranks, root) + "numbers_that_tell() is called.");
    const std::vector<float> yours = numbers_that_tell(ranks, root);
    if (yours.empty() && difference.empty()) {
        held();
        return;
    }
    if (yours.empty())
        throw Wrong(orders +
                    "You say that no numbers tell them apart. But there is a pair of ranks "
                    "that meets before a third one comes in here, and after it there. Give "
                    "the pair two large numbers that take each other away, and the third "
                    "one a small one.");
    if (yours.size() != static_cast<std::size_t>(ranks))
        throw Wrong(job(ranks, root) + "you return " + std::to_string(yours.size()) +
                    " numbers. It is one for each rank, or none at all.");
    const float here = value(*chapters, yours), there = value(*other, yours);
    if (text(*chapters) == text(*other))
        throw Wrong(orders + "You return " + text(yours) +
                    ", but the two orders are the same: no numbers tell them apart.");
    if (difference.empty())
        throw Wrong(orders + "You return " + text(yours) +
                    ", but in both orders the same pairs are "
                    "added, only with left and right exchanged. An addition of two floats "
                    "rounds the exact sum, so a + b and b + a have the same bits: no "
                    "numbers tell these two orders apart.");
    if (have_same_bits(here, there))
        throw Wrong(orders + "With your numbers, " + text(yours) + ", both sums are " + text(here) +
                    ", with the same bits. Where does an addition of one order lose "
                    "something that the other one keeps?");
    held();
}

void check_tell_apart() {
    for (int ranks = 1; ranks <= max_ranks; ranks++)
        for (int root = 0; root < ranks; root++)
            check_tell_apart_of(ranks, root);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"held", check_held}, {"bits", check_bits}, {"tell_apart", check_tell_apart}};
}

}  // namespace ddp::test
