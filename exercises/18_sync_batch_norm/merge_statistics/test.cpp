// The exercise merge_statistics, beside two passes over all values: around 0, and around 1e9.
#include "exercises/18_sync_batch_norm/merge_statistics.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "exercises/support/tasks.hpp"

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
Statistics right_for(Values values, const Values& more = {}) {
    values.insert(values.end(), more.begin(), more.end());
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

std::string to_string(const Statistics& statistics) {
    char text[120];
    std::snprintf(text, sizeof text, "count %g, mean %.10g, m2 %.6g", statistics.count,
                  statistics.mean, statistics.m2);
    return text;
}

bool is(double yours, double other) {
    return std::abs(yours - other) <= 1e-9 * (1 + std::abs(other));
}

// Tells whether the answer is what a wrong formula gives, and what the student is told.
using Cause = std::pair<bool, const char*>;

void require_near(const Statistics& yours, const Statistics& right, const std::string& what,
                  const std::vector<Cause>& causes) {
    const double mean = std::abs(right.mean);
    if (yours.count == right.count && yours.m2 >= 0 &&
        std::abs(yours.mean - right.mean) <= 1e-9 + 1e-15 * mean &&
        std::abs(yours.m2 - right.m2) <= (1e-9 + 1e-13 * mean) * (1 + right.m2))
        return;
    std::string told = what + ": you say " + to_string(yours) + "; right is " + to_string(right);
    for (const auto& [is_it, words] : causes)
        if (is_it && mean < 1e6)
            throw Wrong(told + ".\n" + words);
    throw Wrong(told + (mean < 1e6 ? "."
                                   : ".\nA difference of two large sums has no digits left. "
                                     "Never square a value, only a distance."));
}

void check_add() {
    for (const double around : {0.0, -3.0, 1e9})
        for (const int n : {1, 3, 7, 1000}) {
            const Values values = values_around(around, n, 1);
            Statistics yours;
            double mean = 0, count = 0, by_old = 0, by_new = 0;
            for (const double value : values) {
                const double from_old = value - mean;
                mean += from_old / ++count;
                by_old += from_old * from_old;
                by_new += (value - mean) * (value - mean);
                add(yours, value);
            }
            const Statistics right = right_for(values);
            require_near(yours, right, std::to_string(n) + " values, one by one",
                         {{!is(yours.mean, right.mean),
                           "The mean moves by the distance from the old mean by the NEW count."},
                          {is(yours.m2, by_old),
                           "m2 grows by the square of the distance from the OLD mean: too much, as "
                           "the mean comes nearer to the value."},
                          {is(yours.m2, by_new),
                           "m2 grows by the square of the distance from the NEW mean: too little, "
                           "as the distances of all other values change, too."},
                          {is(yours.m2, right.m2 / count),
                           "m2 is the sum of the squared distances, not their mean."}});
        }
}

void check_merge() {
    for (const auto& [count_a, count_b, around] :
         {std::tuple{10, 10, 0.0}, {3, 11, 0.0}, {11, 3, 0.0}, {1, 1, -20.0}, {400, 37, 1e9}}) {
        const Values values_a = values_around(around, count_a, 1),
                     values_b = values_around(around + 3, count_b, 2);
        const Statistics a = right_for(values_a), b = right_for(values_b),
                         right = right_for(values_a, values_b), yours = merged(a, b);
        const double distance = b.mean - a.mean, within = a.m2 + b.m2;
        require_near(
            yours, right, "merged(" + to_string(a) + " | " + to_string(b) + ")",
            {{is(yours.mean, a.mean + distance * a.count / right.count) && a.count != b.count,
              "Your mean is nearer to the mean of the SMALLER set."},
             {!is(yours.mean, right.mean),
              "Where is the mean of all? Weigh each mean by its count."},
             {is(yours.m2, within),
              "A value's distance from the common mean is its distance within the set, plus the "
              "distance between the two means."},
             {is(yours.m2, within + distance * distance),
              "You count the distance between the means once, but every value has it."},
             {is(yours.m2, within + std::abs(distance) * a.count * b.count / right.count),
              "The distance between the means is not squared."}});
    }
}

void check_without() {
    for (const auto& [count_part, count_rest, around] :
         {std::tuple{6, 6, 0.0}, {4, 11, 0.0}, {40, 1, 0.0}, {12, 100, 1e9}}) {
        const Values taken = values_around(around + 5, count_part, 2),
                     left = values_around(around, count_rest, 1);
        const Statistics part = right_for(taken), right = right_for(left),
                         all = right_for(taken, left), yours = without(all, part);
        const double from_all = part.mean - all.mean;
        require_near(
            yours, right, "without(" + to_string(all) + " | " + to_string(part) + ")",
            {{is(yours.mean, all.mean + from_all * part.count / right.count),
              "The mean moves towards what is taken out: the rest lies on the other side."},
             {is(yours.mean, all.mean - from_all * part.count / all.count),
              "The mean does not move far enough: divide by the count of the REST."},
             {is(yours.m2, all.m2 - part.m2), "The distance between the two sets is still in m2."},
             {is(yours.m2,
                 all.m2 - part.m2 - from_all * from_all * part.count * right.count / all.count),
              "Take the distance between the means of part and REST, and not of part and all."},
             {yours.m2 < 0 && is(yours.m2, right.m2),
              "Rounding must not make m2 negative: the root of that is NaN."}});
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"add", check_add}, {"merge", check_merge}, {"without", check_without}};
}

}  // namespace ddp::test
