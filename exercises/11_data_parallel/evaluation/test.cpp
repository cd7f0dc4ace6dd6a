// The exercise evaluation: tables that tell whose counts are in a sum, and numbers whose spread is
// known because all of them are at hand here.
#include "exercises/11_data_parallel/evaluation.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string on_so_many(int ranks) {
    return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}
std::string to_string(const char* format, double a, double b) {
    char text[160];
    std::snprintf(text, sizeof text, format, a, b);
    return text;
}

// ---- Tables

std::int64_t count_of(int rank, std::size_t cell) {
    return rank == 1 ? 0 : static_cast<std::int64_t>(cell + 1) << (4 * rank);
}
// Returns what a wrong table tells, or "".
std::string cause_of(const Confusion& yours, const Confusion& mine,
                     const std::vector<std::int64_t>& right) {
    bool is_own = true, counts_own_twice = true, is_turned = true;
    const bool is_cut = yours.counts.back() == 0 && right.back() != 0;
    const auto classes = static_cast<std::size_t>(mine.classes);
    for (std::size_t i = 0; i < right.size(); i++) {
        is_own = is_own && yours.counts[i] == mine.counts[i];
        counts_own_twice = counts_own_twice && yours.counts[i] == right[i] + mine.counts[i];
        is_turned = is_turned && yours.counts[i] == right[i % classes * classes + i / classes];
    }
    return is_own             ? " That is this rank's own table."
           : is_cut           ? " The last counts have not arrived: a std::int64_t has eight bytes."
           : counts_own_twice ? " This rank's own counts are in it twice."
           : is_turned        ? " Rows and columns have changed places."
                              : "";
}

void check_tables(int ranks, int classes, const std::string& hint) {
    on_ranks(ranks, [&](Rank& rank) {
        Confusion mine{classes, {}};
        std::vector<std::int64_t> right;
        for (std::size_t cell = 0; cell < static_cast<std::size_t>(classes * classes); cell++) {
            mine.counts.push_back(count_of(rank.rank(), cell));
            right.push_back(0);
            for (int r = 0; r < ranks; r++)
                right.back() += count_of(r, cell);
        }
        const Confusion all = confusion_of_all(rank, mine);
        std::string wrong;
        if (all.classes != classes || all.counts.size() != right.size())
            wrong = "you return a table of " + std::to_string(all.classes) + " classes with " +
                    std::to_string(all.counts.size()) + " counts, and it should be " +
                    std::to_string(classes) + " with " + std::to_string(right.size()) + ".";
        for (std::size_t cell = 0; wrong.empty() && cell < right.size(); cell++)
            if (all.counts[cell] != right[cell])
                wrong = "counts[" + std::to_string(cell) + "] is " +
                        std::to_string(all.counts[cell]) + ", and should be " +
                        std::to_string(right[cell]) + ".";
        if (!wrong.empty() && all.counts.size() == right.size())
            wrong += cause_of(all, mine, right);
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : on_so_many(ranks) + ", on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
    });
}

void check_confusion() {
    check_tables(1, 2, "The case: one rank.");
    check_tables(2, 3, "Every rank needs the sum, not rank 0 alone.");
    check_tables(4, 3, "Every rank's counts must be in it once.");
}

// ---- Scores

// A mean over the classes like the mean recall, but wrongly computed.
struct WrongMean {
    bool by_columns = false;     // the sum of the column stands below the line, not the row's
    bool in_integers = false;    // an integer is divided by an integer
    bool counts_absent = false;  // classes without samples count as 0
};
double mean_of(const Confusion& confusion, const WrongMean& how) {
    const auto n = static_cast<std::size_t>(confusion.classes);
    double sum = 0, classes = 0;
    for (std::size_t k = 0; k < n; k++) {
        double all = 0;
        for (std::size_t other = 0; other < n; other++)
            all += static_cast<double>(
                confusion.counts[how.by_columns ? other * n + k : k * n + other]);
        classes += how.counts_absent || all > 0 ? 1 : 0;
        const double share = all > 0 ? static_cast<double>(confusion.counts[k * n + k]) / all : 0;
        sum += how.in_integers ? std::floor(share) : share;
    }
    return classes > 0 ? sum / classes : 0;
}

// Returns what a wrong mean recall tells, or "".
std::string cause_of_recall(const Confusion& confusion, double yours, const Scores& right) {
    const auto is = [&](double wrong) { return std::abs(yours - wrong) <= 1e-9; };
    std::string causes;
    if (is(mean_of(confusion, {.by_columns = true})) ||
        is(mean_of(confusion, {.by_columns = true, .counts_absent = true})))
        causes += "You divide by the column's sum (precision); the recall divides by the row's. ";
    if (is(mean_of(confusion, {.in_integers = true})))
        causes += "Is an integer divided by an integer? The rest is dropped in C++. ";
    if (is(right.accuracy))
        causes += "That is the accuracy: in the mean recall each class counts the same. ";
    return causes;
}

void check_score(const Confusion& confusion, const Scores& right, const std::string& hint) {
    const Scores scores = scores_of(confusion);
    const auto is_near = [](double yours, double wanted) {
        return std::abs(yours - wanted) <= 1e-9;  // false for NaN
    };
    if (!is_near(scores.accuracy, right.accuracy))
        throw Wrong(
            to_string("You say the accuracy is %g; it is %g.\n", scores.accuracy, right.accuracy) +
            (scores.accuracy == 0 && right.accuracy > 0
                 ? "Is an integer divided by an integer? The rest is dropped in C++. "
             : is_near(scores.accuracy, right.mean_recall) ? "That is the mean recall. "
                                                           : "") +
            hint);
    if (!is_near(scores.mean_recall, right.mean_recall))
        throw Wrong(to_string("You say the mean recall is %g; it is %g.\n", scores.mean_recall,
                              right.mean_recall) +
                    cause_of_recall(confusion, scores.mean_recall, right) + hint);
    held();
}

void check_scores() {
    check_score({2, {4, 1, 1, 0}}, {4.0 / 6, 0.4}, "The case: the table of the contract.");
    check_score({3, {3, 1, 0, 0, 1, 1, 6, 2, 2}}, {0.375, (0.75 + 0.5 + 0.2) / 3},
                "Rows are the true classes, columns what they were taken for.");
    check_score({3, {3, 1, 0, 0, 0, 0, 0, 2, 2}}, {0.625, 0.625},
                "Class 1 has no samples here: it has no recall, and does not count in the mean.");
    check_score({2, {0, 0, 0, 0}}, {0, 0}, "The case: there are no samples at all.");
}

// ---- Spread

// What each rank has; all of it is at hand here.
using Parts = std::vector<std::vector<double>>;

Spread spread_of(const std::vector<double>& numbers) {
    Spread spread;
    spread.count = static_cast<std::int64_t>(numbers.size());
    for (const double x : numbers)
        spread.mean += x / static_cast<double>(numbers.size());
    for (const double x : numbers)
        spread.squares += (x - spread.mean) * (x - spread.mean);
    return spread;
}

bool is_near(double yours, double right) {
    return std::abs(yours - right) <= 1e-9 * std::abs(right);  // false for NaN
}

// Returns what a wrong spread tells, or "".
std::string cause_of_spread(const Spread& yours, const Spread& mine, const Spread& right,
                            const Parts& parts) {
    double deviations = 0, means = 0, within = 0, between = 0;
    for (const std::vector<double>& part : parts) {
        const Spread of = spread_of(part);
        deviations += of.standard_deviation() / static_cast<double>(parts.size());
        means += of.mean / static_cast<double>(parts.size());
        within += of.squares;
        between += (of.mean - right.mean) * (of.mean - right.mean);
    }
    if (std::isnan(yours.mean) || std::isnan(yours.squares))
        return " That comes of 0 / 0.";
    if (parts.size() > 1 && yours.count == mine.count)
        return " That is this rank's own spread.";
    if (yours.count == right.count && !is_near(yours.mean, right.mean))
        return is_near(yours.mean, means) ? " That is the mean of the ranks' means."
                                          : " A set pulls the common mean by its OWN count.";
    if (is_near(yours.standard_deviation(), deviations))
        return " That is the mean of the ranks' deviations.";
    if (is_near(yours.squares, right.squares / static_cast<double>(right.count)))
        return " You divide the squares by the count; return their sum.";
    if (is_near(yours.squares, within))
        return " Your squares are those from the ranks' own means.";
    if (is_near(yours.squares, within + between))
        return " The distance of a rank's mean counts once in yours, and not for each of its "
               "numbers.";
    return "";
}

void check_parts(const Parts& parts, const std::string& hint) {
    std::vector<double> numbers;
    for (const std::vector<double>& part : parts)
        numbers.insert(numbers.end(), part.begin(), part.end());
    const Spread right = spread_of(numbers);
    const int ranks = static_cast<int>(parts.size());
    on_ranks(ranks, [&](Rank& rank) {
        const Spread mine = spread_of(parts[static_cast<std::size_t>(rank.rank())]);
        const Spread all = spread_of_all(rank, mine);
        std::string wrong;
        if (all.count != right.count)
            wrong = "you count " + std::to_string(all.count) + " numbers, and there are " +
                    std::to_string(right.count) + ".";
        else if (!is_near(all.mean, right.mean))
            wrong = to_string("you say the mean is %.12g; it is %.12g.", all.mean, right.mean);
        else if (!is_near(all.standard_deviation(), right.standard_deviation()))
            wrong = to_string("you say the standard deviation is %.12g; it is %.12g.",
                              all.standard_deviation(), right.standard_deviation());
        if (!wrong.empty())
            wrong += cause_of_spread(all, mine, right, parts);
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : on_so_many(ranks) + ", on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
        const std::string bytes(reinterpret_cast<const char*>(&all), sizeof all);
        for (const std::string& theirs : rank.all_gather(bytes))
            if (theirs != bytes)
                throw Wrong(on_so_many(ranks) +
                            ": the ranks don't have the same bits.\nSums of floats depend on their "
                            "order: go through the ranks in the same order everywhere.");
    });
}

// Two numbers on the first rank, three on the next, and so on, around `mean`.
Parts parts_around(int ranks, double mean) {
    Parts parts(static_cast<std::size_t>(ranks));
    int number = 0;
    for (std::size_t r = 0; r < parts.size(); r++)
        for (std::size_t i = 0; i < r + 2; i++, number++)
            parts[r].push_back(mean + static_cast<double>(number * 37 % 19) / 8);
    return parts;
}

void check_spread() {
    check_parts({{1, 2, 4}}, "The case: one rank.");
    check_parts({{1, 3}, {0, 4}},
                "The case: both ranks have the same mean, so their squares simply add up.");
    check_parts({{1, 1, 1}, {3, 3, 3}},
                "On each rank all numbers are the same, but the ranks' means differ: that is a "
                "spread, too.");
    check_parts({{1, 2, 3, 4, 5, 6}, {10}},
                "The ranks have different numbers of samples: weigh their means by them.");
    check_parts({{}, {1, 4}, {}, {2}}, "The case: some ranks have no samples.");
    check_parts({{}, {}}, "The case: no rank has any samples.");
    check_parts(parts_around(3, 2.5), "The case: three ranks. What do all so far have together?");
    check_parts(
        parts_around(3, 1e6),
        "The mean is a million times the deviation here. A sum of squares minus a square of "
        "sums is then a small difference of two large numbers, and has lost its digits.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"confusion", check_confusion}, {"scores", check_scores}, {"spread", check_spread}};
}

}  // namespace ddp::test
