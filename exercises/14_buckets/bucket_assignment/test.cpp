// The exercise bucket_assignment: plans that a real PyTorch has made, and the chapter's own plans
// for the way back.
#include "exercises/14_buckets/bucket_assignment.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "14_buckets/bucket_plan.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;
using Gradients = std::vector<ModelGradient>;

// ---- Task assignment

std::string to_string(const Buckets& buckets) {
    std::string text;
    for (const auto& bucket : buckets) {
        text += text.empty() ? "[" : " [";
        for (std::size_t i = 0; i < bucket.size(); i++)
            text += (i > 0 ? " " : "") + std::to_string(bucket[i]);
        text += "]";
    }
    return text.empty() ? "no bucket" : text;
}

std::string to_string(const Gradients& gradients) {
    std::string text;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        const ModelGradient& gradient = gradients[i];
        text += "  " + std::to_string(i) + ": " +
                std::to_string(gradient.elements * bytes_of(gradient.type)) + " bytes of " +
                name_of(gradient.type) +
                (gradient.device > 0 ? ", device " + std::to_string(gradient.device) : "") +
                (gradient.is_sparse ? ", sparse" : "") + "\n";
    }
    return text;
}

// The rule, with what may go wrong in it.
struct Rule {
    const char* words;                // of the mistake
    bool counts_elements = false;     // for bytes
    bool leaves_open = false;         // what is open at the end
    bool keeps_counting = false;      // the bytes of a closed bucket
    bool stays_at_the_first = false;  // limit
    bool closes_above = false;        // the limit only
    bool mixes_devices = false;
    bool mixes_types = false;
    bool sparse_uses_a_limit = false;
    bool sparse_closes_the_open = false;
};

Buckets buckets_by(const Rule& rule, const Gradients& gradients,
                   const std::vector<std::size_t>& limits) {
    struct Open {
        std::vector<std::size_t> gradients;
        std::size_t bytes = 0, limit = 0;
    };
    Buckets closed;
    std::map<std::pair<int, int>, Open> open;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        const ModelGradient& gradient = gradients[i];
        Open& bucket = open[{rule.mixes_types ? 0 : static_cast<int>(gradient.type),
                             rule.mixes_devices ? 0 : gradient.device}];
        if (gradient.is_sparse) {
            closed.push_back({i});
            bucket.limit += rule.sparse_uses_a_limit ? 1 : 0;
            if (rule.sparse_closes_the_open && !bucket.gradients.empty()) {
                closed.push_back(bucket.gradients);
                bucket = {{}, 0, bucket.limit + 1};
            }
            continue;
        }
        const std::size_t limit =
            limits[rule.stays_at_the_first ? 0 : std::min(bucket.limit, limits.size() - 1)];
        bucket.gradients.push_back(i);
        bucket.bytes += gradient.elements * (rule.counts_elements ? 1 : bytes_of(gradient.type));
        if (bucket.bytes < limit + (rule.closes_above ? 1 : 0))
            continue;
        closed.push_back(bucket.gradients);
        bucket = {{}, rule.keeps_counting ? bucket.bytes : 0, bucket.limit + 1};
    }
    for (const auto& [key, bucket] : open)
        if (!bucket.gradients.empty() && !rule.leaves_open)
            closed.push_back(bucket.gradients);
    std::ranges::sort(closed);
    return closed;
}

const std::vector<Rule> mistakes = {
    {.words = "You count elements where bytes are asked for: a float has four bytes, a half two.\n",
     .counts_elements = true},
    {.words = "What is left at the end is missing: buckets that are still open are closed then.\n",
     .leaves_open = true},
    {.words = "A sparse gradient uses up a limit in your code; it touches none.\n",
     .sparse_uses_a_limit = true},
    {.words = "A sparse gradient closes the open bucket in your code; it goes past it.\n",
     .sparse_closes_the_open = true},
    {.words = "Each of your buckets has the first limit.\n", .stays_at_the_first = true},
    {.words = "A bucket that has exactly reached its limit is closed, too: >=, not >.\n",
     .closes_above = true},
    {.words = "You put two devices' gradients into one bucket.\n", .mixes_devices = true},
    {.words = "You put gradients of two types into one bucket.\n", .mixes_types = true},
    {.words = "You go on counting the bytes of the bucket that was closed: the next one begins "
              "with 0 bytes.\n",
     .keeps_counting = true}};

// Returns what wrong buckets tell, or "". Several mistakes may have made them: two are told.
std::string cause_of(Buckets yours, const Gradients& gradients,
                     const std::vector<std::size_t>& limits) {
    std::ranges::sort(yours);
    std::vector<std::string> causes;
    for (const Rule& mistake : mistakes)
        if (causes.size() < 2 && yours == buckets_by(mistake, gradients, limits))
            causes.push_back(mistake.words);
    return causes.empty() ? "" : causes.size() == 1 ? causes[0] : causes[0] + "Or: " + causes[1];
}

void check(const Gradients& gradients, const std::vector<std::size_t>& limits, const Buckets& right,
           const std::string& hint) {
    const Buckets yours = assign_buckets(gradients, limits);
    if (yours == right)
        return;
    Buckets sorted = yours;
    std::ranges::sort(sorted);
    std::string all;
    for (const std::size_t limit : limits)
        all += (all.empty() ? "" : ", ") + std::to_string(limit);
    throw Wrong("Limits of " + all + " bytes, and these gradients:\n" + to_string(gradients) +
                "You say " + to_string(yours) + ", and PyTorch makes " + to_string(right) + ".\n" +
                (sorted == right ? "These are the buckets, in another order: they are sorted by "
                                   "their first gradients."
                                 : cause_of(yours, gradients, limits) + hint));
}

constexpr ElementType full = ElementType::float32, half = ElementType::float16;

// The answers are those of _compute_bucket_assignment_by_size in PyTorch 2.15.
void check_assignment() {
    check({{10, full}, {90, full}, {10, full}, {200, full}, {1, full}, {1, full}}, {400, 800},
          {{0, 1}, {2, 3}, {4, 5}},
          "The gradient with which a bucket reaches its limit stays in it. The second bucket has "
          "the second limit.");
    check({{100, full}, {100, full}, {100, full}, {100, full}, {100, full}}, {400, 800},
          {{0}, {1, 2}, {3, 4}},
          "The limits are 400, 800, 800, 800, ...: the last one holds for all that follow.");
    check({{10, full}, {10, full}, {300, full}, {10, full}}, {100}, {{0, 1, 2}, {3}},
          "A gradient that is larger than the limit is not cut, and goes where the others are.");
    check({{100, full}, {100, half}, {100, full}, {100, half}, {100, full}, {100, half}},
          {400, 800}, {{0}, {1, 3}, {2, 4}, {5}},
          "The case: the types take turns. Each type has an open bucket of its own, which waits "
          "for the next "
          "gradient of that type; and each counts its own limits.");
    check({{10, full}, {10, full, 1}, {10, full}, {10, full, 1}}, {60}, {{0, 2}, {1, 3}},
          "The case: gradients of one type lie on two devices: one all-reduce cannot have both.");
    check({{100, full}, {100, full, 1}, {100, full}, {100, full}, {100, full, 1}, {100, full, 1}},
          {400, 800}, {{0}, {1}, {2, 3}, {4, 5}},
          "The first bucket of a type AND device has the first limit, whatever other devices do.");
    check({{100, full}, {1000, full, 0, true}, {100, full}, {100, full}, {100, full}},
          {400, 800, 200}, {{0}, {1}, {2, 3}, {4}},
          "A sparse gradient has a bucket of its own, which has used up no limit.");
    check(
        {{10, full}, {300, full, 0, true}, {10, full}, {5, full, 0, true}, {10, half}, {10, full}},
        {100}, {{0, 2, 5}, {1}, {3}, {4}},
        "A sparse gradient goes past the open buckets: they stay open.");
    const Gradients mixed = {
        {8, full},     {50, full, 0, true}, {50, half, 1}, {3, full, 1},
        {8, full, 1},  {3, half, 1},        {8, full, 1},  {20, full, 1},
        {120, full},   {20, full, 1, true}, {20, half, 1}, {120, full, 1},
        {20, full, 1}, {20, full, 0, true}, {50, half, 1}, {50, half, 1, true}};
    check(mixed, {100, 300},
          {{0, 8}, {1}, {2}, {3, 4, 6, 7}, {5, 10, 14}, {9}, {11}, {12}, {13}, {15}},
          "The case: all rules at once.");
}

// ---- Task smallest_cap

// Counts the buckets of the chapter's own plan, which its tests compare with PyTorch's. Elements
// are bytes here: gradients may have any number of them.
std::size_t buckets_with(const std::vector<std::size_t>& bytes, std::size_t cap) {
    GradientSizes gradients;
    for (const std::size_t size : bytes)
        gradients.push_back({"", size, ElementType::uint8});
    return assign_by_size(gradients, {cap}).size();
}

// Returns what a wrong limit tells, or "".
std::string cause_of_cap(const std::vector<std::size_t>& bytes, std::size_t most, std::size_t cap) {
    const std::size_t all = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
    if (cap == all / most || cap == (all + most - 1) / most)
        return "Yours are equal shares of all bytes, but gradients are not divided, and one that "
               "crosses the limit stays in.\n";
    if (cap == all)
        return "Yours is the sum of all bytes, which makes one bucket; fewer buckets than allowed "
               "are right only if no smaller limit will do.\n";
    if (cap == std::ranges::max(bytes))
        return "Yours is the largest gradient's size; a limit may be smaller or larger than that. "
               "(And a bucket is closed at >=, not at >.)\n";
    std::size_t right = 1;
    while (buckets_with(bytes, right) > most)
        right++;
    if (cap == right + 1)
        return "Yours is one byte too many: where does your search stop?\n";
    if (cap + 1 == right)
        return "Yours is one byte too few: is the bucket closed at >= or at >, and where does your "
               "search stop?\n";
    if (cap < right && buckets_with(bytes, cap) == most + 1)
        return "You forget the bucket that is still open at the end, or stop too soon.\n";
    return "";
}

void check_cap(const std::vector<std::size_t>& bytes, std::size_t most, const std::string& hint) {
    const std::size_t cap = smallest_cap(bytes, most);
    std::string sizes;
    for (const std::size_t size : bytes)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    const std::string asked = "Gradients of " + sizes + " bytes, at most " + std::to_string(most) +
                              " buckets: you say " + std::to_string(cap) + ". ";
    if (cap < 1)
        throw Wrong(asked + "A limit is 1 or more.");
    const std::string cause = cause_of_cap(bytes, most, cap) + hint;
    if (const std::size_t buckets = buckets_with(bytes, cap); buckets > most)
        throw Wrong(asked + "With that limit there are " + std::to_string(buckets) + ".\n" + cause);
    if (cap > 1 && buckets_with(bytes, cap - 1) <= most)
        throw Wrong(asked + "With a limit of " + std::to_string(cap - 1) +
                    " there are not more than " + std::to_string(most) + " either.\n" + cause);
}

void check_smallest_cap() {
    check_cap({400}, 1, "The case: there is one gradient only, so any limit will do.");
    check_cap({400, 400}, 1,
              "The gradient that crosses the limit stays in the bucket: it may be the last one.");
    check_cap(
        {400, 400, 400, 400}, 3,
        "No limit makes exactly three buckets of these: 400 makes four, and 401 makes two. At "
        "most three are asked for.");
    check_cap({400, 80, 40, 800, 4, 400}, 6,
              "The case: so many buckets are allowed that any limit will do.");
    for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}})
        check_cap({400, 80, 40, 800, 4, 400}, most,
                  "Sizes are uneven: equal shares of all bytes are not what the rule makes.");
    check_cap({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 3,
              "Ten bytes in three buckets are 3.33 for each, and a bucket has whole bytes.");
    trying(
        "Three gradients of 300,000,000,000 bytes, at most 1 bucket. To try one limit after the "
        "other takes hours: halve the range in which the right one is.");
    const std::size_t cap = smallest_cap({300'000'000'000, 300'000'000'000, 300'000'000'000}, 1);
    if (cap != 600'000'000'001)
        throw Wrong("Three gradients of 300,000,000,000 bytes, at most 1 bucket: you say " +
                    std::to_string(cap) + "; right is 600000000001.");
    trying("");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"assignment", check_assignment}, {"smallest_cap", check_smallest_cap}};
}

}  // namespace ddp::test
