// The exercise merge_statistics, beside two passes over all values: small means and large ones,
// parts of different sizes, and empty ones.
#include "exercises/18_sync_batch_norm/merge_statistics.hpp"

#include <cmath>
#include <cstdio>
#include <string>
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

std::string to_string(const Statistics& statistics) {
    char text[120];
    std::snprintf(text, sizeof text, "count %g, mean %.10g, m2 %.6g", statistics.count,
                  statistics.mean, statistics.m2);
    return text;
}

// Everything in sums of squares of the size of 1e18 would be wrong by hundreds.
void require_near(const Statistics& yours, const Statistics& right, const std::string& what,
                  const std::string& hint) {
    const double mean = std::abs(right.mean), mean_digits = 1e-9 + 1e-15 * mean;
    const auto is_within = [&](double of_mean, double of_m2) {
        return yours.count == right.count && std::abs(yours.mean - right.mean) <= of_mean &&
               std::abs(yours.m2 - right.m2) <= of_m2 * (1 + right.m2) && yours.m2 >= 0;
    };
    if (is_within(mean_digits, 1e-9 + 1e-13 * mean))
        return;
    throw Wrong(what + ": you say " + to_string(yours) + "; right is " + to_string(right) + ".\n" +
                hint);
}

const std::string large =
    "The case: the mean is large, and the distances from it are small. A difference of two large "
    "sums has no digits left. Never square a value, only a distance.";

std::string values_text(int n, double mean) {
    char text[80];
    std::snprintf(text, sizeof text, "%d values around %g", n, mean);
    return text;
}

// ---- Task add

// A one-pass rule for m2 that is wrong, and what the student is told.
struct WrongAdd {
    const char* words;
    double (*grows)(double from_old, double from_new);  // m2, with every value but the first
};
const WrongAdd wrong_adds[] = {
    {"m2 grows by the square of the distance from the OLD mean: that is too much, as the mean "
     "comes nearer to the value.",
     [](double from_old, double) { return from_old * from_old; }},
    {"m2 grows by the square of the distance from the NEW mean: that is too little, as the "
     "distances of all other values change, too.",
     [](double, double from_new) { return from_new * from_new; }},
    {"This is m2 divided by the count: m2 is the sum of the squared distances, not their mean.",
     [](double from_old, double from_new) { return from_old * from_new; }}};

// Returns what a wrong m2 tells, or "".
std::string cause_of(const Statistics& yours, const Statistics& right, const Values& values) {
    if (yours.count != right.count)
        return "The count is wrong: it grows by one with each value.\n";
    if (std::abs(yours.mean - right.mean) > 1e-6)
        return "The mean is wrong: divide the distance between the value and the old mean by the "
               "NEW count.\n";
    for (const WrongAdd& wrong : wrong_adds) {
        double mean = 0, count = 0, m2 = 0;
        for (const double value : values) {
            const double from_old = value - mean;
            mean += from_old / (count + 1);
            m2 += count == 0 ? 0 : wrong.grows(from_old, value - mean);
            count++;
        }
        if (&wrong == &wrong_adds[2])
            m2 /= count;
        if (std::abs(yours.m2 - m2) <= 1e-9 * m2)
            return std::string(wrong.words) + "\n";
    }
    return "";
}

void check_add() {
    for (const double mean : {0.0, -3.0, 1e9})
        for (const int n : {1, 3, 7, 1000}) {
            const Values values = values_around(mean, n, 1);
            Statistics yours;
            for (const double value : values)
                add(yours, value);
            require_near(yours, right_for(values), values_text(n, mean) + ", one by one",
                         mean == 1e9 ? large
                         : n == 1
                             ? "The case: one value. It is the mean, and has no distance from it."
                             : cause_of(yours, right_for(values), values) +
                                   "The case: each new value moves the mean, and with it all "
                                   "distances.");
        }
}

// ---- Task merge

// Returns what wrong statistics of two parts tell, or "".
std::string cause_of_merge(const Statistics& yours, const Statistics& right, const Statistics& a,
                           const Statistics& b) {
    const double distance = b.mean - a.mean;
    const auto is = [](double one, double other) {
        return std::abs(one - other) <= 1e-9 * (1 + std::abs(other));
    };
    if (yours.count != right.count)
        return "The count is wrong.\n";
    if (is(yours.mean, b.mean + distance * b.count / right.count) ||
        is(yours.mean, a.mean - distance * b.count / right.count))
        return "The mean goes away from the other set: it lies between the two.\n";
    if (is(yours.mean, a.mean + distance * a.count / right.count) && a.count != b.count)
        return "Your mean is nearer to the mean of the SMALLER set.\n";
    if (is(yours.m2, a.m2 + b.m2 + distance * distance))
        return "You count the distance between the means once, but every value has it.\n";
    if (is(yours.m2, a.m2 + b.m2 + std::abs(distance) * a.count * b.count / right.count))
        return "The distance between the means is not squared.\n";
    if (is(yours.m2, a.m2 + b.m2 + distance * distance * a.count * b.count))
        return "The product of both counts is not divided by the count of all.\n";
    return "";
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
    if (parts.size() == 2) {
        const Statistics both = merged(parts[0], parts[1]);
        require_near(both, right_for(all),
                     about + " values around " + std::to_string(std::lround(mean)),
                     cause_of_merge(both, right_for(all), parts[0], parts[1]) + hint);
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
                   "The case: two parts of one size. A value's distance from the common mean is "
                   "its distance within the part, plus the distance between the two means.");
    check_merge_of({3, 11}, 0, "The case: parts of different sizes. Weigh a mean by its count.");
    check_merge_of({11, 3}, 0, "The case: parts of different sizes. Weigh a mean by its count.");
    check_merge_of({1, 1}, 0, "The case: two parts of one value.");
    check_merge_of({5, 1, 400, 37}, -20, "The case: four parts. Any order gives the same.");
    check_merge_of({5, 1, 400, 37}, 1e9, large);
}

// ---- Task without

// Returns what a wrong rest tells, or "".
std::string cause_of_without(const Statistics& yours, const Statistics& right,
                             const Statistics& all, const Statistics& part) {
    const auto is = [](double one, double other) {
        return std::abs(one - other) <= 1e-9 * (1 + std::abs(other));
    };
    if (right.count == 0)
        return "";
    if (yours.count != right.count)
        return "The count is wrong.\n";
    if (is(yours.mean, all.mean))
        return "The mean stays where it was: it moves away from what is taken out.\n";
    if (is(yours.mean, all.mean + (part.mean - all.mean) * part.count / right.count))
        return "The mean moves towards what is taken out: the rest lies on the other side.\n";
    if (is(yours.mean, all.mean - (part.mean - all.mean) * part.count / all.count))
        return "The mean does not move far enough: divide by the count of the REST.\n";
    const double from_all = part.mean - all.mean, from_rest = part.mean - right.mean;
    if (is(yours.m2, all.m2 - part.m2))
        return "The distance between the two sets is still in m2.\n";
    if (is(yours.m2, all.m2 - part.m2 - from_all * from_all * part.count * right.count / all.count))
        return "Take the distance between the means of part and REST, and not of part and all.\n";
    if (is(yours.m2,
           all.m2 - part.m2 + from_rest * from_rest * part.count * right.count / all.count))
        return "The sign is wrong: what merge adds is subtracted here.\n";
    return "";
}

void check_without_of(int before, int part, int after, double mean, const std::string& hint) {
    const Values first = values_around(mean, before, 1);
    const Values taken = values_around(mean + 5, part, 2);
    const Values last = values_around(mean - 4, after, 3);
    Values all = first, left = first;
    all.insert(all.end(), taken.begin(), taken.end());
    all.insert(all.end(), last.begin(), last.end());
    left.insert(left.end(), last.begin(), last.end());
    const Statistics rest = without(right_for(all), right_for(taken));
    require_near(
        rest, right_for(left),
        std::to_string(all.size()) + " values, without " + std::to_string(part) + " of them",
        mean == 1e9
            ? hint
            : cause_of_without(rest, right_for(left), right_for(all), right_for(taken)) + hint);
}

void check_without() {
    check_without_of(6, 6, 0, 0, "The case: half of the values are taken out.");
    check_without_of(9, 4, 2, 0, "The case: a part that is smaller than the rest.");
    check_without_of(1, 40, 0, 0,
                     "The case: one value is left. Its m2 is 0, and rounding must not make it "
                     "negative: the root of that is NaN.");
    check_without_of(30, 12, 70, 1e9, large);
}

// ---- Task no_values

void check_no_values() {
    check_merge_of({0, 7, 0, 1}, 0, "The case: two parts have no value.");
    check_merge_of({0, 0}, 0,
                   "The case: there is no value at all. All numbers are 0, and not NaN.");
    check_without_of(9, 0, 2, 0, "The case: nothing is taken out.");
    check_without_of(0, 8, 0, 0, "The case: all values are taken out.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"add", check_add},
            {"merge", check_merge},
            {"without", check_without},
            {"no_values", check_no_values}};
}

}  // namespace ddp::test
