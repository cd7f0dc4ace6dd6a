// The exercise merge_statistics, beside two passes over all values: small means and large ones,
// parts of unequal sizes, and empty ones.
#include "exercises/16_sync_batch_norm/merge_statistics.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<double>;

// `n` different values around `mean`, at distances below 3 that doubles have exactly.
Values values_around(double mean, int n, int seed) {
    Values values;
    for (int i = 0; i < n; i++)
        values.push_back(mean + ((i * 37 + seed * 11) % 41 - 20) / 8.0);
    return values;
}

// Two passes, of distances from the first value: exact enough for every mean.
Statistics right_for(const Values& values) {
    if (values.empty())
        return {};
    const auto n = static_cast<double>(values.size());
    double sum = 0, squares = 0;
    for (const double value : values)
        sum += value - values[0];
    for (const double value : values) {
        const double distance = value - values[0] - sum / n;
        squares += distance * distance;
    }
    return {n, values[0] + sum / n, squares};
}

std::string text_of(const Statistics& statistics) {
    char text[120];
    std::snprintf(text, sizeof text, "count %g, mean %.10g, m2 %.6g", statistics.count,
                  statistics.mean, statistics.m2);
    return text;
}

// Everything in sums of squares of the size of 1e18 would be wrong by hundreds.
void require_near(const Statistics& yours, const Statistics& right, const std::string& what,
                  const std::string& hint) {
    if (yours.count == right.count && std::abs(yours.mean - right.mean) <= 1e-6 &&
        std::abs(yours.m2 - right.m2) <= 1e-4 * (1 + right.m2) && yours.m2 >= 0)
        return;
    throw Wrong(what + ": you say " + text_of(yours) + "; right is " + text_of(right) + ".\n" +
                hint);
}

const std::string large =
    "The mean is large here, and the distances from it are small: a difference of two large sums "
    "has no digits left. Never square a value, only a distance.";

std::string values_text(int n, double mean) {
    char text[80];
    std::snprintf(text, sizeof text, "%d values around %g", n, mean);
    return text;
}

// ---- Tasks

void check_add() {
    for (const double mean : {0.0, -3.0, 1e9})
        for (const int n : {1, 2, 7, 1000}) {
            const Values values = values_around(mean, n, 1);
            Statistics yours;
            for (const double value : values)
                add(yours, value);
            require_near(yours, right_for(values), values_text(n, mean) + ", one by one",
                         mean == 1e9 ? large
                         : n == 1    ? "A single value has no distance from its mean."
                                  : "With a new value the mean moves, and with it all distances. "
                                    "What does one of the two distances of the new value, from "
                                    "the old mean and from the new one, say alone?");
        }
}

void check_merge_of(const std::vector<int>& counts, double mean, const std::string& hint) {
    Values all;
    Statistics from_left, from_right;
    std::vector<Statistics> parts;
    std::string about;
    for (std::size_t i = 0; i < counts.size(); i++) {
        // The parts have means of their own.
        const Values values =
            values_around(mean + 3.0 * static_cast<double>(i), counts[i], static_cast<int>(i));
        all.insert(all.end(), values.begin(), values.end());
        parts.push_back(right_for(values));
        about += (about.empty() ? "Parts of " : ", ") + std::to_string(counts[i]);
    }
    for (std::size_t i = 0; i < parts.size(); i++) {
        from_left = i == 0 ? parts[0] : merged(from_left, parts[i]);
        const Statistics& other = parts[parts.size() - 1 - i];
        from_right = i == 0 ? other : merged(other, from_right);
    }
    about += " values around " + std::to_string(static_cast<long long>(mean));
    require_near(from_left, right_for(all), about + ", from the first to the last", hint);
    require_near(from_right, right_for(all), about + ", from the last to the first", hint);
}

void check_merge() {
    check_merge_of({10, 10}, 0,
                   "Both parts are of one size. A value's distance from the common mean is its "
                   "distance within the part, and then that of the part's mean from the common "
                   "one.");
    check_merge_of({3, 11}, 0, "The parts are of unequal sizes: a mean weighs by its count.");
    check_merge_of({0, 7, 0, 1}, 0, "Two parts have no value: they change nothing.");
    check_merge_of({0, 0}, 0, "Nobody has a value: count, mean and m2 are 0, and not NaN.");
    check_merge_of({5, 1, 400, 37}, -20, "Any order of merging gives the same.");
    check_merge_of({5, 1, 400, 37}, 1e9, large);
}

void check_without_of(int before, int part, int behind, double mean, const std::string& hint) {
    const Values first = values_around(mean, before, 1);
    const Values taken = values_around(mean + 5, part, 2);
    const Values last = values_around(mean - 4, behind, 3);
    Values all = first, left = first;
    all.insert(all.end(), taken.begin(), taken.end());
    all.insert(all.end(), last.begin(), last.end());
    left.insert(left.end(), last.begin(), last.end());
    require_near(
        without(right_for(all), right_for(taken)), right_for(left),
        std::to_string(all.size()) + " values, without " + std::to_string(part) + " of them", hint);
}

void check_without() {
    check_without_of(6, 6, 0, 0, "Half of the values are taken away: solve the formula of merge.");
    check_without_of(9, 4, 2, 0, "The counts are unequal: what is left has another count.");
    check_without_of(9, 0, 2, 0, "Nothing is taken away.");
    check_without_of(0, 8, 0, 0,
                     "Everything is taken away: count, mean and m2 are 0, and not NaN.");
    check_without_of(1, 40, 0, 0,
                     "One value is left: its m2 is 0, but for roundings, never below.");
    check_without_of(30, 12, 70, 1e9, large);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"add", check_add}, {"merge", check_merge}, {"without", check_without}};
}

}  // namespace ddp::test
