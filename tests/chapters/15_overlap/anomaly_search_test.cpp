// A NaN or an infinity in a bucket is traced to its parameter.
#include "15_overlap/anomaly_search.hpp"

#include <limits>

#include "tests/chapters/14_buckets/test_buckets.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr float float_infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::string complaint(AnomalySearch& anomalies) {
    return thrown<std::runtime_error>([&] { anomalies.require_finite(); });
}

// Three gradients, and a search in their buckets.
struct Searched : Three {
    void search(std::size_t i) { anomalies.search(buffers.bucket(i), device.stream()); }

    AnomalySearch anomalies{device, buffers};
};

std::string not_finite(const std::string& where) {
    return "the gradient of " + where + ": the steps are too long, or the loss divides by zero";
}

}  // namespace

TEST_CASE("anomaly search: NaN and infinity are traced to their parameter") {
    Searched three;
    for (const float bad : {nan, -nan, float_infinity, -float_infinity}) {
        three.write(0, Values(64, 0.0f));
        three.write(16 + 19, {bad});
        three.search(0);
        REQUIRE(complaint(three.anomalies) ==
                not_finite("'b' is infinite or no number at element 19 of 20"));
        REQUIRE(complaint(three.anomalies) == "(nothing)");  // that search is over
    }
    three.write(48, {0, nan, 0, 0, nan});
    three.search(0);
    REQUIRE(complaint(three.anomalies) ==
            not_finite("'b' is infinite or no number at element 19 of 20"));
    three.search(1);
    REQUIRE(complaint(three.anomalies) ==
            not_finite("'a' is infinite or no number at element 1 of 5"));
    for (const std::size_t bucket : {0, 1}) {  // two searches, one answer: the first in memory
        three.search(bucket);
        three.search(1 - bucket);
        REQUIRE(complaint(three.anomalies) ==
                not_finite("'b' is infinite or no number at element 19 of 20"));
    }
}

TEST_CASE("anomaly search: the largest and the smallest numbers are numbers") {
    Searched three;
    const float most = std::numeric_limits<float>::max();
    const float least = std::numeric_limits<float>::denorm_min();
    three.write(0, {most, -most, least});
    three.write(48, {-0.0f, -least});
    three.search(0);
    three.search(1);
    REQUIRE(complaint(three.anomalies) == "(nothing)");
}

TEST_CASE("anomaly search: a write into a gap is noticed") {
    Searched three;
    three.write(3, {float_infinity});  // c has elements 0 to 2
    three.search(0);
    REQUIRE(complaint(three.anomalies) ==
            "the gap after a gradient is infinite or no number: a kernel has written beyond its "
            "gradient");
}

TEST_CASE("anomaly search: every place of a large bucket is searched") {
    Device device;
    const int size = 300'007;
    const Parameters parameters{make(device, "large", size)};
    const BucketPlan plan = first_plan(gradient_sizes(parameters));
    const std::size_t elements = plan.memory_bytes() / sizeof(float);
    const auto memory = std::make_shared<Buffer<float>>(elements);
    const FlatBuffers buffers(device, parameters, plan, {memory, memory->data()}, elements);
    AnomalySearch anomalies(device, buffers);
    for (const int place : {0, 1, 255, 4096, 150'001, size - 2, size - 1}) {
        Tensor one = buffers.view(0).view(static_cast<std::size_t>(place), {1});
        one.copy_from(Values{nan});
        anomalies.search(buffers.bucket(0), device.stream());
        REQUIRE(complaint(anomalies) == not_finite("'large' is infinite or no number at element " +
                                                   std::to_string(place) + " of 300007"));
        one.copy_from(Values{0});
    }
}

}  // namespace ddp::test
