// The same buckets as PyTorch's, gradient by gradient: those of its function, and those that a real
// DistributedDataParallel handed to its communication hook in three iterations.
#include "14_buckets/bucket_plan.hpp"
#include "tests/chapters/14_buckets/test_buckets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden.hpp"

namespace ddp::test {
namespace {

std::vector<std::size_t> numbers(const Golden& golden, const std::string& name) {
    const std::vector<float>& values = golden.tensor(name).values;
    return {values.begin(), values.end()};
}

std::vector<std::size_t> limits_of(const Golden& golden, const std::string& name) {
    std::vector<std::size_t> limits;
    for (const float value : golden.tensor(name).values)
        limits.push_back(value < 0 ? unlimited_bucket : static_cast<std::size_t>(value));
    return limits;
}

GradientSizes gradients_of(const Golden& golden, const std::vector<std::size_t>& types) {
    const std::vector<std::size_t> elements = numbers(golden, "elements");
    GradientSizes gradients;
    for (std::size_t i = 0; i < elements.size(); i++)
        gradients.push_back(
            {"g" + std::to_string(i), elements[i], static_cast<ElementType>(types[i])});
    return gradients;
}

// The buckets that `name`.sizes and `name`.gradients describe.
BucketAssignment buckets_of(const Golden& golden, const std::string& name) {
    const std::vector<std::size_t> gradients = numbers(golden, name + ".gradients");
    BucketAssignment buckets;
    auto next = gradients.begin();
    for (const std::size_t size : numbers(golden, name + ".sizes")) {
        buckets.emplace_back(next, next + static_cast<std::ptrdiff_t>(size));
        next += static_cast<std::ptrdiff_t>(size);
    }
    REQUIRE(next == gradients.end());
    return buckets;
}

// The arguments of a real DistributedDataParallel, and the buckets that it made.
struct DdpRun {
    explicit DdpRun(const std::string& file)
        : golden(read_golden(file)),
          gradients(gradients_of(
              golden, std::vector<std::size_t>(golden.tensor("elements").values.size(), 0))),
          find_unused_parameters(golden.number("find_unused_parameters") == 1) {
        if (golden.number("cap_mb") >= 0)
            cap = static_cast<std::size_t>(golden.number("cap_mb")) << 20;
    }
    BucketAssignment iteration(int number) const {
        return buckets_of(golden, "iteration" + std::to_string(number));
    }
    std::vector<std::size_t> ready_order() const { return numbers(golden, "ready_order"); }

    Golden golden;
    GradientSizes gradients;
    std::optional<std::size_t> cap;
    bool find_unused_parameters;
};

}  // namespace

TEST_CASE("bucket plan: the assignments are PyTorch's") {
    const std::vector<std::string> files = golden_files("buckets_");
    REQUIRE(files.size() == 8);
    for (const std::string& file : files) {
        const Golden golden = read_golden(file);
        const GradientSizes gradients = gradients_of(golden, numbers(golden, "types"));
        const int limit_lists = static_cast<int>(golden.number("limit_lists"));
        REQUIRE(limit_lists > 1);
        for (int k = 0; k < limit_lists; k++) {
            const std::string number = std::to_string(k);
            INFO(file << ", limits" << number);
            const std::vector<std::size_t> limits = limits_of(golden, "limits" + number);
            REQUIRE(assign_by_size(gradients, limits) == buckets_of(golden, "model" + number));
            REQUIRE(assign_by_size(gradients, limits, numbers(golden, "ready_order")) ==
                    buckets_of(golden, "ready" + number));
        }
    }
}

TEST_CASE("bucket plan: DistributedDataParallel's first iteration and all later ones") {
    for (const char* file : {"ddp_mlp.txt", "ddp_cnn.txt", "ddp_eight.txt", "ddp_eight_cap1.txt",
                             "ddp_eight_cap4.txt"}) {
        INFO(file);
        const DdpRun run(file);
        REQUIRE(buckets_of(first_plan(run.gradients)) == run.iteration(1));
        const BucketPlan rebuilt =
            rebuilt_plan(run.gradients, bucket_limits(run.cap), run.ready_order());
        REQUIRE(buckets_of(rebuilt) == run.iteration(2));
        REQUIRE(run.iteration(3) == run.iteration(2));  // rebuilt once
        REQUIRE(run.iteration(1) != run.iteration(2));
    }
}

TEST_CASE("bucket plan: DistributedDataParallel with find_unused_parameters keeps its first plan") {
    for (const char* file : {"ddp_unused.txt", "ddp_unused_cap1.txt"}) {
        INFO(file);
        const DdpRun run(file);
        REQUIRE(run.find_unused_parameters);
        REQUIRE(buckets_of(first_plan(run.gradients, bucket_limits(run.cap))) == run.iteration(1));
        REQUIRE(run.iteration(3) == run.iteration(1));
        REQUIRE(buckets_of(first_plan(run.gradients)) != run.iteration(1));
    }
}

TEST_CASE("bucket plan: an older PyTorch has a first bucket of 1 MiB even under a given cap") {
    const DdpRun run("ddp_eight_cap4.in_1.13.txt");
    REQUIRE(run.golden.made_by().starts_with("PyTorch 1.13"));
    REQUIRE(buckets_of(first_plan(run.gradients)) == run.iteration(1));
    REQUIRE(assign_by_size(run.gradients, {first_bucket_bytes, *run.cap}, run.ready_order()) ==
            run.iteration(2));
    REQUIRE(buckets_of(rebuilt_plan(run.gradients, bucket_limits(run.cap), run.ready_order())) !=
            run.iteration(2));
}

}  // namespace ddp::test
