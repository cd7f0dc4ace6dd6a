// The exercise bucket_assignment: plans that a real PyTorch has made, and the chapter's own plans
// for the way back.
#include "exercises/14_buckets/bucket_assignment.hpp"

#include <string>

#include "14_buckets/bucket_plan.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;
using Gradients = std::vector<ModelGradient>;
using Sizes = std::vector<std::size_t>;  // in bytes

std::string to_string(const Sizes& numbers) {
    std::string text;
    for (const std::size_t number : numbers)
        text += (text.empty() ? "" : " ") + std::to_string(number);
    return "[" + text + "]";
}
std::string to_string(const Buckets& buckets) {
    std::string text;
    for (const Sizes& bucket : buckets)
        text += to_string(bucket);
    return text.empty() ? "no bucket" : text;
}
std::string to_string(const Gradients& gradients) {
    std::string text;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        const ModelGradient& gradient = gradients[i];
        text += "  " + std::to_string(i) + ": " +
                std::to_string(gradient.elements * bytes_of(gradient.type)) + " bytes of " +
                name_of(gradient.type) + ", device " + std::to_string(gradient.device) +
                (gradient.is_sparse ? ", sparse" : "") + "\n";
    }
    return text;
}

void check(const Gradients& gradients, const Sizes& limits, const Buckets& right,
           const std::string& hint) {
    const Buckets yours = assign_buckets(gradients, limits);
    if (yours != right)
        throw Wrong("Limits of " + to_string(limits) + " bytes, and these gradients:\n" +
                    to_string(gradients) + "You say " + to_string(yours) + ", right is " +
                    to_string(right) + ".\n" + hint);
}

constexpr ElementType full = ElementType::float32, half = ElementType::float16;

// The first four cases are small. The answers to all others are those of PyTorch 2.15:
// _compute_bucket_assignment_by_size.
void check_assignment() {
    check({{10, full}, {20, full}}, {400}, {{0, 1}},
          "What is left at the end: buckets that are still open are closed then.");
    check({{10, full}, {90, full}, {10, full}}, {400}, {{0, 1}, {2}},
          "A bucket that has exactly reached its limit in BYTES is closed, too: >=, not >.");
    check({{10, full}, {300, full}, {10, full}}, {100}, {{0, 1}, {2}},
          "The gradient with which a bucket reaches its limit stays in it, however large it is.");
    check({{100, full}, {60, full}, {60, full}}, {400}, {{0}, {1, 2}},
          "The bucket after one that was closed begins with 0 bytes.");
    check({{100, full}, {100, full}, {100, full}, {100, full}, {100, full}}, {400, 800},
          {{0}, {1, 2}, {3, 4}},
          "The limits are 400, 800, 800, 800, ...: the last one holds for all that follow.");
    check(
        {{100, full}, {100, half}, {100, full}, {100, half}, {100, full}, {100, half}}, {400, 800},
        {{0}, {1, 3}, {2, 4}, {5}},
        "The types take turns. Each type has an open bucket of its own, which waits for the next "
        "gradient of that type; and each counts its own limits. (The order: by first gradients.)");
    check({{100, full}, {100, full, 1}, {100, full}, {100, full}, {100, full, 1}, {100, full, 1}},
          {400, 800}, {{0}, {1}, {2, 3}, {4, 5}},
          "One all-reduce cannot have two devices' gradients. The first bucket of a type AND "
          "device has the first limit, whatever other devices do.");
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
          "These are all rules at once.");
}

// ---- Task smallest_cap

// Counts the buckets of the chapter's own plan, which its tests compare with PyTorch's. Elements
// are bytes here: gradients may have any number of them.
std::size_t buckets_with(const Sizes& bytes, std::size_t cap) {
    GradientSizes gradients;
    for (const std::size_t size : bytes)
        gradients.push_back({"", size, ElementType::uint8});
    return assign_by_size(gradients, {cap}).size();
}

void check_cap(const Sizes& bytes, std::size_t most, const std::string& hint) {
    const std::size_t cap = smallest_cap(bytes, most);
    const std::string what = "Gradients of " + to_string(bytes) + " bytes, at most " +
                             std::to_string(most) + " buckets: you say " + std::to_string(cap) +
                             ". ";
    if (cap < 1)
        throw Wrong(what + "A limit is 1 or more.");
    if (buckets_with(bytes, cap) > most)
        throw Wrong(what + "It makes " + std::to_string(buckets_with(bytes, cap)) + ". " + hint);
    if (cap > 1 && buckets_with(bytes, cap - 1) <= most)
        throw Wrong(what + "One byte less will do, too. " + hint);
}

void check_smallest_cap() {
    check_cap({400, 400}, 1,
              "The gradient that crosses the limit stays in the bucket: it may be the last one.");
    check_cap({400, 400, 400, 400}, 3,
              "400 makes four buckets, 401 makes two, and no limit makes three.");
    check_cap({400, 80, 40, 800, 4, 400}, 6, "So many buckets are allowed that any limit will do.");
    for (const std::size_t most : {1, 2, 3, 4})
        check_cap({400, 80, 40, 800, 4, 400}, most,
                  "Is a bucket closed at >= or at >, and where does your search stop?");
    trying(
        "Three gradients of 300,000,000,000 bytes, at most 1 bucket. To try one limit after the "
        "other takes hours: halve the range in which the right one is.");
    check_cap({300'000'000'000, 300'000'000'000, 300'000'000'000}, 1, "");
    trying("");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"assignment", check_assignment}, {"smallest_cap", check_smallest_cap}};
}

}  // namespace ddp::test
