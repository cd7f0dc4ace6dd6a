// The exercise bucket_assignment: plans that a real PyTorch has made, and the chapter's own rule
// for the way back.
#include "exercises/13_buckets/bucket_assignment.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "13_buckets/bucket_plan.hpp"
#include "tests/exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;
using Gradients = std::vector<ModelGradient>;

// ---- Task assignment

std::string text_of(const Buckets& buckets) {
    std::string text;
    for (const auto& bucket : buckets) {
        text += text.empty() ? "[" : " [";
        for (std::size_t i = 0; i < bucket.size(); i++)
            text += (i > 0 ? " " : "") + std::to_string(bucket[i]);
        text += "]";
    }
    return text.empty() ? "no bucket" : text;
}

std::string text_of(const Gradients& gradients) {
    std::string text;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        const ModelGradient& gradient = gradients[i];
        text += "  " + std::to_string(i) + ": " +
                std::to_string(gradient.elements * bytes_of(gradient.type)) + " bytes of " +
                name_of(gradient.type) + (gradient.device > 0 ? ", the second device" : "") +
                (gradient.is_sparse ? ", sparse" : "") + "\n";
    }
    return text;
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
    throw Wrong("Limits of " + all + " bytes, and these gradients:\n" + text_of(gradients) +
                "You say " + text_of(yours) + ", and PyTorch makes " + text_of(right) + ".\n" +
                (sorted == right ? "These are the buckets, in another order." : hint));
}

constexpr ElementType full = ElementType::float32, half = ElementType::float16;

// The answers are those of _compute_bucket_assignment_by_size in PyTorch 1.13.
void check_assignment() {
    check({{10, full}, {90, full}, {10, full}, {200, full}, {1, full}, {1, full}}, {400, 800},
          {{0, 1}, {2, 3}, {4, 5}},
          "The gradient with which a bucket reaches its limit stays in it. The second bucket has "
          "the second limit.");
    check({{10, full}, {10, full}, {300, full}, {10, full}}, {100}, {{0, 1, 2}, {3}},
          "A gradient that is larger than the limit is not cut, and goes where the others are.");
    check({{100, full}, {100, half}, {100, full}, {100, half}, {100, full}, {100, half}},
          {400, 800}, {{0}, {1, 3}, {2, 4}, {5}},
          "The types take turns. Each type has an open bucket of its own, which waits for the next "
          "gradient of that type; and each counts its own limits.");
    check({{10, full}, {10, full, 1}, {10, full}, {10, full, 1}}, {60}, {{0, 2}, {1, 3}},
          "Two gradients of one type lie on two devices: one all-reduce cannot have both.");
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
    const std::string all = "All rules are at work here.";
    check(mixed, {100, 300},
          {{0, 8}, {1}, {2}, {3, 4, 6, 7}, {5, 10, 14}, {9}, {11}, {12}, {13}, {15}}, all);
    check(mixed, {60, 90, 500},
          {{0, 8}, {1}, {2}, {3, 4, 6}, {5, 10, 14}, {7, 11}, {9}, {12}, {13}, {15}}, all);
}

// ---- Task smallest_cap

// By the chapter's own rule.
std::size_t buckets_with(const std::vector<std::size_t>& bytes, std::size_t cap) {
    GradientSizes gradients;
    for (const std::size_t size : bytes)
        gradients.push_back({"", size / sizeof(float)});
    std::vector<std::size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return assign_by_size(gradients, {cap}, order).size();
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
    if (const std::size_t buckets = buckets_with(bytes, cap); buckets > most)
        throw Wrong(asked + "With that limit there are " + std::to_string(buckets) + ".\n" + hint);
    if (cap > 1 && buckets_with(bytes, cap - 1) <= most)
        throw Wrong(asked + "With a limit of " + std::to_string(cap - 1) + " there are no more.\n" +
                    hint);
}

void check_smallest_cap() {
    check_cap({400}, 1, "There is one gradient only: any limit will do.");
    check_cap({400, 400}, 1,
              "The gradient that crosses the limit stays in the bucket: it may be the last one.");
    check_cap({400, 80, 40, 800, 4, 400}, 6, "So many buckets are allowed that any limit will do.");
    for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}})
        check_cap({400, 80, 40, 800, 4, 400}, most,
                  "Sizes are uneven: equal shares of all bytes are not what the rule makes.");
    std::vector<std::size_t> many;
    for (std::size_t i = 0; i < 300; i++)
        many.push_back(4 * (1 + i * 7919 % 100'003));
    for (const std::size_t most : {std::size_t{2}, std::size_t{7}, std::size_t{40}}) {
        const std::size_t cap = smallest_cap(many, most);
        if (cap < 2 || buckets_with(many, cap) > most || buckets_with(many, cap - 1) <= most)
            throw Wrong("300 gradients, at most " + std::to_string(most) + " buckets: you say " +
                        std::to_string(cap) + ", which is not the smallest limit.");
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"assignment", check_assignment}, {"smallest_cap", check_smallest_cap}};
}

}  // namespace ddp::test
