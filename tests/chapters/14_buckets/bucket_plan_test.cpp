// The rules of a bucket plan, with one case for each that fails if the rule is broken; what holds
// for any list of gradients; and the broadcast of rank 0's plan.
#include "14_buckets/plan_text.hpp"

#include <algorithm>
#include <numeric>

#include "common/data/random.hpp"
#include "tests/chapters/14_buckets/test_buckets.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Order = std::vector<std::size_t>;
constexpr ElementType type_count[] = {ElementType::float32, ElementType::float64,
                                      ElementType::float16, ElementType::bfloat16};

// Gradients "g0", "g1", ... of so many floats: four bytes each.
GradientSizes floats(const std::vector<std::size_t>& elements) {
    GradientSizes gradients;
    for (const std::size_t count : elements)
        gradients.push_back({"g" + std::to_string(gradients.size()), count});
    return gradients;
}

// f: a float32 of 4 bytes, d: a float64 of 8, h: a float16 of 2, b: a bfloat16 of 2.
GradientSizes ones_of(const std::string& types) {
    GradientSizes gradients = floats(std::vector<std::size_t>(types.size(), 1));
    for (std::size_t i = 0; i < types.size(); i++)
        gradients[i].type = type_count[std::string("fdhb").find(types[i])];
    return gradients;
}

std::string refusal_of_order(const GradientSizes& gradients, const Order& order) {
    return thrown<std::invalid_argument>([&] { assign_by_size(gradients, {1}, order); });
}

}  // namespace

TEST_CASE("bucket plan: a type's size in bytes, and its name") {
    REQUIRE(bytes_of(ElementType::float32) == 4);
    REQUIRE(bytes_of(ElementType::float64) == 8);
    REQUIRE(bytes_of(ElementType::float16) == 2);
    REQUIRE(bytes_of(ElementType::bfloat16) == 2);
    REQUIRE(name_of(ElementType::bfloat16) == "bfloat16");
    REQUIRE(GradientSize{"g", 3, ElementType::float64}.bytes() == 24);
}

TEST_CASE("bucket plan: a bucket that has reached its limit is closed, one byte below it is not") {
    REQUIRE(assign_by_size(floats({5, 5, 1}), {40}) == BucketAssignment{{0, 1}, {2}});
    REQUIRE(assign_by_size(floats({5, 5, 1}), {41}) == BucketAssignment{{0, 1, 2}});
    REQUIRE(assign_by_size(floats({10, 1}), {40}) == BucketAssignment{{0}, {1}});
}

TEST_CASE("bucket plan: the gradient that crosses the limit stays in, and none is split") {
    REQUIRE(assign_by_size(floats({3, 100, 1, 1}), {20}) == BucketAssignment{{0, 1}, {2, 3}});
    REQUIRE(assign_by_size(floats({1000}), {8}) == BucketAssignment{{0}});
}

TEST_CASE("bucket plan: limits advance with every closed bucket, and the last one stays") {
    REQUIRE(assign_by_size(floats(std::vector<std::size_t>(14, 1)), {4, 8, 16}) ==
            BucketAssignment{{0}, {1, 2}, {3, 4, 5, 6}, {7, 8, 9, 10}, {11, 12, 13}});
}

TEST_CASE("bucket plan: no bucket of two types, and limits advance for each type") {
    // Limits 8, then 16: the first d fills a bucket, the next one needs two; the f take two, then
    // four.
    REQUIRE(assign_by_size(ones_of("fdfdfdff"), {8, 16}) ==
            BucketAssignment{{0, 2}, {1}, {3, 5}, {4, 6, 7}});
    REQUIRE(assign_by_size(ones_of("hbhb"), {100}) == BucketAssignment{{0, 2}, {1, 3}});
}

TEST_CASE("bucket plan: in the model's order buckets stand by their first gradients") {
    // The bucket of d is closed before that of f, which began earlier.
    REQUIRE(assign_by_size(ones_of("fdf"), {8}) == BucketAssignment{{0, 2}, {1}});
}

TEST_CASE("bucket plan: in ready order buckets stand as they were closed, the open ones last") {
    REQUIRE(assign_by_size(ones_of("fdf"), {8}, {0, 1, 2}) == BucketAssignment{{1}, {0, 2}});
    REQUIRE(assign_by_size(floats({2, 1, 3, 4}), {16}, {2, 0, 3, 1}) ==
            BucketAssignment{{2, 0}, {3}, {1}});
    // f and h are open at the end, and f appeared first.
    REQUIRE(assign_by_size(ones_of("dhfff"), {8, 100}, {2, 3, 1, 4, 0}) ==
            BucketAssignment{{2, 3}, {0}, {1}, {4}});
}

TEST_CASE("bucket plan: gradients without elements keep their place in the order") {
    REQUIRE(assign_by_size(floats({0, 2, 0, 0}), {8}) == BucketAssignment{{0, 1}, {2, 3}});
    REQUIRE(assign_by_size(floats({0, 0}), {0}) == BucketAssignment{{0}, {1}});
    const BucketPlan plan = first_plan(floats({0, 2, 0}));
    REQUIRE(plan.places == std::vector<BucketPlan::Place>{{0, 0}, {0, 0}, {0, 16}});
    REQUIRE(first_plan(floats({0})).memory_bytes() == 0);
}

TEST_CASE("bucket plan: no gradients, no limits and impossible orders are refused") {
    REQUIRE(thrown<std::invalid_argument>([] { assign_by_size({}, {1}); }) ==
            "there are no gradients to put into buckets: the model needs a parameter that is not "
            "frozen");
    REQUIRE(thrown<std::invalid_argument>([] { assign_by_size(floats({1}), {}); }) ==
            "buckets need at least one limit of their size");
    const GradientSizes three = floats({1, 2, 3});
    REQUIRE(refusal_of_order(three, {2, 1, 0}) == "(nothing)");
    REQUIRE(refusal_of_order(three, {0, 3, 1}) ==
            "the ready order names gradient 3, but there are only 3");
    REQUIRE(refusal_of_order(three, {2, 0, 2}) ==
            "the ready order names the gradient of 'g2' twice");
    REQUIRE(refusal_of_order(three, {2, 0}) ==
            "the ready order lacks the gradient of 'g1': buckets can be rebuilt only when all "
            "gradients were ready");
    REQUIRE(refusal_of_order(three, {}) != "(nothing)");
}

TEST_CASE("bucket plan: 1 MiB, then 25 MiB, unless a cap is given") {
    REQUIRE(bucket_limits(std::nullopt) == Order{1'048'576, 26'214'400});
    REQUIRE(bucket_limits(4096) == Order{4096});
    REQUIRE(bucket_limits(0) == Order{0});
}

TEST_CASE("bucket plan: the first iteration has one bucket a type, under any cap") {
    const BucketPlan plan = first_plan(ones_of("fdfd"));
    REQUIRE(buckets_of(plan) == BucketAssignment{{1, 3}, {0, 2}});  // reversed
    REQUIRE(plan.buckets[0].type == ElementType::float64);
    REQUIRE(plan.buckets[0].bytes == 16);
    REQUIRE(plan.buckets[1].bytes == 8);
}

TEST_CASE("bucket plan: with find_unused_parameters the list's buckets, the last first") {
    REQUIRE(buckets_of(first_plan(floats({4, 1, 2, 3, 1}), {16})) ==
            BucketAssignment{{4}, {1, 2, 3}, {0}});
    const std::size_t mib = std::size_t{1} << 18;  // floats
    REQUIRE(
        buckets_of(first_plan(floats({mib, 24 * mib, mib, mib}), bucket_limits(std::nullopt))) ==
        BucketAssignment{{3}, {1, 2}, {0}});
}

TEST_CASE("bucket plan: the rebuilt plan follows the ready order and is not reversed") {
    REQUIRE(buckets_of(rebuilt_plan(floats({4, 1, 2, 3, 1}), {16}, {4, 3, 2, 0, 1})) ==
            BucketAssignment{{4, 3}, {2, 0}, {1}});
    const std::size_t mib = std::size_t{1} << 18;
    REQUIRE(buckets_of(rebuilt_plan(floats({mib, 24 * mib, mib, mib}), bucket_limits(std::nullopt),
                                    {3, 2, 1, 0})) == BucketAssignment{{3}, {2, 1}, {0}});
}

// The bytes of chapters/pytorch_versions.md.
TEST_CASE("bucket plan: a cap for each bucket divides the first iteration, too, as in PyTorch") {
    const GradientSizes mlp = floats({784 * 1024, 1024, 1024 * 1024, 1024, 10 * 1024, 10});
    const auto bytes_of = [](const BucketPlan& plan) {
        Order bytes;
        for (const BucketPlan::Bucket& bucket : plan.buckets)
            bytes.push_back(bucket.bytes);
        return bytes;
    };
    const Order caps{1 << 20, 4 << 20};
    REQUIRE(bytes_of(first_plan(mlp, caps)) == Order{45'096, 4'198'400, 3'211'264});
    REQUIRE(bytes_of(rebuilt_plan(mlp, caps, {5, 4, 3, 2, 1, 0})) == Order{4'239'400, 3'215'360});
}

TEST_CASE("bucket plan: every gradient begins at 64 bytes, and what the rules count has no gaps") {
    GradientSizes gradients = floats({10, 16, 17, 1});
    gradients.push_back({"h", 33, ElementType::float16});
    gradients.push_back({"d", 9, ElementType::float64});
    const BucketPlan plan = first_plan(gradients);
    REQUIRE(buckets_of(plan) == BucketAssignment{{5}, {4}, {0, 1, 2, 3}});
    REQUIRE(plan.places ==
            std::vector<BucketPlan::Place>{{2, 0}, {2, 16}, {2, 32}, {2, 64}, {1, 0}, {0, 0}});
    REQUIRE(plan.buckets[2].bytes == 44 * 4);
    REQUIRE(plan.buckets[2].size == 80);
    REQUIRE(plan.buckets[1].bytes == 66);
    REQUIRE(plan.buckets[1].size == 64);  // float16
    REQUIRE(plan.buckets[0].size == 16);  // float64
    REQUIRE(plan.memory_bytes() == 320 + 128 + 128);
}

// ---- Any list --------------------------------------------------------------------------------

namespace {

GradientSizes random_gradients(Random& random) {
    GradientSizes gradients = floats(std::vector<std::size_t>(1 + random.below(40)));
    const std::size_t types = 1 + random.below(4);
    for (GradientSize& gradient : gradients)
        gradient.elements = random.below(2) ? random.below(4) : random.below(500),
        gradient.type = type_count[random.below(types)];
    return gradients;
}

std::vector<std::size_t> random_limits(Random& random) {
    std::vector<std::size_t> limits(1 + random.below(3));
    for (std::size_t& limit : limits)
        limit = random.below(3000);
    return limits;
}

Order random_order(Random& random, std::size_t count) {
    Order order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; i++)
        std::swap(order[i], order[i + random.below(count - i)]);
    return order;
}

std::size_t total_bytes(const GradientSizes& gradients, const Order& some) {
    std::size_t bytes = 0;
    for (const std::size_t i : some)
        bytes += gradients[i].bytes();
    return bytes;
}

// Checks the rules for one type, whose gradients come in `order`: they fill its buckets in that
// order, the gradient that reaches the k-th limit closes the k-th bucket, and only the last bucket
// may be below its limit.
void require_buckets_of_type(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                             const Order& order, const BucketAssignment& buckets) {
    Order filled;
    for (std::size_t k = 0; k < buckets.size(); k++) {
        const std::size_t limit = limits[std::min(k, limits.size() - 1)];
        const std::size_t bytes = total_bytes(gradients, buckets[k]);
        if (k + 1 < buckets.size())
            REQUIRE(bytes >= limit);
        if (buckets[k].size() > 1)
            REQUIRE(bytes - gradients[buckets[k].back()].bytes() < limit);
        filled.insert(filled.end(), buckets[k].begin(), buckets[k].end());
    }
    REQUIRE(filled == order);
}

void require_rules(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                   const Order& order, const BucketAssignment& buckets) {
    std::size_t found = 0;
    for (const ElementType type : type_count) {
        const auto is_mine = [&](std::size_t i) { return gradients[i].type == type; };
        Order mine;
        std::ranges::copy_if(order, std::back_inserter(mine), is_mine);
        BucketAssignment buckets_of_mine;
        for (const Order& bucket : buckets)
            if (std::ranges::all_of(bucket, is_mine))
                buckets_of_mine.push_back(bucket);
        found += buckets_of_mine.size();
        require_buckets_of_type(gradients, limits, mine, buckets_of_mine);
    }
    REQUIRE(found == buckets.size());  // no bucket of two types, and none without gradients
}

// No two gradients overlap, none reaches beyond its bucket, each begins where it should.
void require_layout(const BucketPlan& plan) {
    std::size_t total = 0;
    for (std::size_t b = 0; b < plan.buckets.size(); b++) {
        const BucketPlan::Bucket& bucket = plan.buckets[b];
        std::size_t end = 0;
        for (const std::size_t i : bucket.gradients) {
            REQUIRE(plan.places[i].bucket == b);
            REQUIRE(plan.places[i].offset >= end);
            REQUIRE(plan.places[i].offset * bytes_of(bucket.type) % 64 == 0);
            end = plan.places[i].offset + plan.gradients[i].elements;
        }
        REQUIRE(end <= bucket.size);
        REQUIRE(bucket.bytes == total_bytes(plan.gradients, bucket.gradients));
        total += bucket.size * bytes_of(bucket.type);
    }
    REQUIRE(plan.memory_bytes() == total);
}

}  // namespace

TEST_CASE("bucket plan: any list, any limits, any order") {
    Random random(5);
    for (int round = 0; round < 400; round++) {
        INFO("round " << round);
        const GradientSizes gradients = random_gradients(random);
        const std::vector<std::size_t> limits = random_limits(random);
        const Order order = random_order(random, gradients.size());
        Order model(gradients.size());
        std::iota(model.begin(), model.end(), std::size_t{0});

        const BucketAssignment by_model = assign_by_size(gradients, limits);
        require_rules(gradients, limits, model, by_model);
        REQUIRE(std::ranges::is_sorted(by_model, {}, [](const Order& b) { return b.front(); }));
        require_rules(gradients, limits, order, assign_by_size(gradients, limits, order));

        const BucketPlan first =
            round % 2 == 1 ? first_plan(gradients, limits) : first_plan(gradients);
        const BucketPlan rebuilt = rebuilt_plan(gradients, limits, order);
        require_layout(first);
        require_layout(rebuilt);
        REQUIRE(rebuilt.memory_bytes() == first.memory_bytes());
        REQUIRE(decode_plan(encode_plan(rebuilt), gradients) == rebuilt);
    }
}

// ---- From rank 0 to the others -----------------------------------------------------------------

namespace {

const GradientSizes three_gradients = {
    {"weight", 7}, {"bias", 3}, {"scale", 20, ElementType::float64}};
const std::string damaged_text =
    "the bucket plan from rank 0 is damaged: all ranks must run the same program";

std::string refusal(const std::string& text, const GradientSizes& gradients = three_gradients) {
    return thrown<std::runtime_error>([&] { decode_plan(text, gradients); });
}

std::string refused_as_other_network(const std::string& what) {
    return "the bucket plan from rank 0 " + what + ": build the same network on every rank";
}

}  // namespace

TEST_CASE("bucket plan: rank 0's plan arrives unchanged and replaces a rank's own") {
    const BucketPlan of_rank_0 = rebuilt_plan(three_gradients, {8}, {1, 2, 0});
    REQUIRE(buckets_of(of_rank_0) == BucketAssignment{{1}, {2}, {0}});
    REQUIRE(encode_plan(of_rank_0) ==
            "bucket_plan 3\nfloat 1  1 3\ndouble 1  2 20\nfloat 1  0 7\n");
    const BucketPlan here = decode_plan(encode_plan(of_rank_0), three_gradients);
    REQUIRE(here == of_rank_0);
    REQUIRE(here != rebuilt_plan(three_gradients, {8}, {0, 1, 2}));
}

TEST_CASE("bucket plan: a plan for other gradients is refused, and the gradient is named") {
    const auto plan = [](const GradientSizes& gradients) {
        return encode_plan(first_plan(gradients));
    };
    GradientSizes other = three_gradients;
    other[1].elements = 4;
    REQUIRE(refusal(plan(other)) ==
            refused_as_other_network("has 4 elements of float for 'bias', which has 3 elements "
                                     "of float here"));
    other = three_gradients;
    other[0].type = ElementType::float64;
    REQUIRE(refusal(plan(other)) ==
            refused_as_other_network("has 7 elements of double for 'weight', which has 7 elements "
                                     "of float here"));
    other = three_gradients;
    other.push_back({"more", 1});
    REQUIRE(refusal(plan(other)) ==
            refused_as_other_network("names gradient 3, and this rank has 3"));
    REQUIRE(refusal(plan(three_gradients), other) == refused_as_other_network("lacks 'more'"));
    BucketPlan twice = first_plan(three_gradients);
    twice.buckets[1].gradients = {0, 1, 0};
    REQUIRE(refusal(encode_plan(twice)) == refused_as_other_network("has 'weight' twice"));
    BucketPlan missing = first_plan(three_gradients);
    missing.buckets[1].gradients = {0};
    REQUIRE(refusal(encode_plan(missing)) == refused_as_other_network("lacks 'bias'"));
}

TEST_CASE("bucket plan: a damaged plan is refused") {
    const std::string good = encode_plan(rebuilt_plan(three_gradients, {8}, {1, 2, 0}));
    REQUIRE(refusal(good) == "(nothing)");
    for (const char* text :
         {"", "hello", "bucket_plan", "bucket_plan x", "bucket_plan -1", "bucket_plan 1 float",
          "bucket_plan 1 float128 1 0 7", "bucket_plan 1 float 0", "bucket_plan 1 float 1 0 7x",
          "bucket_plan 1 float 1 0 99999999999999999999", "bucket_plan 18446744073709551615"})
        REQUIRE(refusal(text) == damaged_text);
    REQUIRE(refusal(good + "1") == damaged_text);
    for (std::size_t length = 0; length < good.size() - 1; length++)
        REQUIRE(refusal(good.substr(0, length)) != "(nothing)");
}

}  // namespace ddp::test
