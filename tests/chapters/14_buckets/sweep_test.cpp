// The sweep: its model, computed by hand, and its prediction for a simulated link.
#include "14_buckets/show/reports.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Two gradients of 1 MiB and one of 512 bytes.
GradientSizes three() {
    return {{"c", 1 << 18}, {"b", 1 << 18}, {"a", 128}};
}

BucketPlan plan_of(std::size_t cap) {
    return rebuilt_plan(three(), {cap}, {0, 1, 2});
}

}  // namespace

TEST_CASE("sweep: buckets are ready one after the other, and are sent one after the other") {
    const CostModel message{1e-3, 1e-9};
    constexpr double mib = 1 << 20;
    const BucketPlan each = plan_of(0), all = plan_of(unlimited_bucket);
    const double backward = 10e-3;
    const std::vector<double> ready = ready_seconds(each, backward);
    const double whole = 2 * mib + 512;
    REQUIRE(ready.size() == 3);
    REQUIRE(ready[0] == Approx(backward * mib / whole));
    REQUIRE(ready[1] == Approx(backward * 2 * mib / whole));
    REQUIRE(ready[2] == Approx(backward));
    // Few bytes take one exchange of all ranks' whole data. Many bytes take two exchanges, and each
    // byte passes 2 (N - 1) / N times.
    REQUIRE(bucket_seconds(message, 4, 512) == Approx(1e-3 + 3 * 512e-9));
    REQUIRE(bucket_seconds(message, 4, 1 << 20) == Approx(2e-3 + 1.5 * mib * 1e-9));
    REQUIRE(predicted_seconds(all, message, 4, backward) ==
            Approx(backward + 2e-3 + 1.5 * whole * 1e-9));
    // The first is done before the second is ready; the third waits for the second.
    REQUIRE(
        predicted_seconds(each, message, 4, backward) ==
        Approx(ready[1] + bucket_seconds(message, 4, 1 << 20) + bucket_seconds(message, 4, 512)));
    // With no backward to wait for, all buckets are sent in a row.
    REQUIRE(predicted_seconds(each, message, 4, 0) ==
            Approx(2 * bucket_seconds(message, 4, 1 << 20) + bucket_seconds(message, 4, 512)));
}

TEST_CASE("sweep: measured is within a quarter of what was predicted") {
    const LinkSpeed link{200e6, 2e-3};
    const CostModel message{link.latency_s, 1 / link.bytes_per_second};
    for (const int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        bool is_near = true, is_possible = true;
        world.run([&](Rank& rank) {
            Peers peers(rank, 4 << 20, {}, link);
            for (const std::size_t cap : {std::size_t{0}, unlimited_bucket}) {
                const BucketPlan plan = plan_of(cap);
                ArenaBuffer<float> memory = peers.allocate<float>(plan.memory_bytes() / 4);
                memory.copy_from(std::vector<float>(memory.size(), 1));
                const double predicted = predicted_seconds(plan, message, ranks, 15e-3);
                try_until_good(rank, [&] {
                    const double measured = measured_seconds(peers, memory, plan, 15e-3);
                    const bool near = measured < 1.25 * predicted;
                    if (rank.rank() == 0) {
                        is_near = near;
                        is_possible = is_possible && measured > 0.9 * predicted;
                    }
                    return near;
                });
                rank.barrier();
                const std::vector<float> averages = memory.to_host_now();
                for (const float value : averages)
                    if (value != 1)
                        throw std::runtime_error("the average of ones is not one");
            }
        });
        CAPTURE(ranks);
        REQUIRE(is_near);
        REQUIRE(is_possible);
    }
}

TEST_CASE("sweep: bits depend on the buckets from three ranks on", "[as_one]") {
    for (const int ranks : {1, 2, 3, 4}) {
        World world(thread_options(ranks));
        std::vector<std::string> bits;
        world.run([&](Rank& rank) {
            for (const std::size_t cap : {std::size_t{0}, unlimited_bucket, std::size_t{0}}) {
                const std::string mine = hash_of_reduced(rank, three(), cap);
                if (rank.rank() == 1 % ranks)
                    bits.push_back(mine);
            }
        });
        CAPTURE(ranks);
        REQUIRE(bits[0] == bits[2]);
        REQUIRE((bits[0] == bits[1]) == (ranks < 3));
    }
}

TEST_CASE("plans: the picture's file has each gradient once in each iteration") {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("plans_" + std::to_string(getpid()) + ".csv");
    show_plans({}, 1, path);
    std::ifstream file(path);
    std::map<std::string, std::size_t> bytes;     // by network and iteration
    std::set<std::string> gradients, last_layer;  // of all; in bucket 0 of the eight layers
    std::size_t rows = 0;
    std::string line;
    std::getline(file, line);
    for (; std::getline(file, line); rows++) {
        std::istringstream cells(line);
        std::string network, iteration, bucket, gradient, size;
        for (std::string* cell : {&network, &iteration, &bucket, &gradient, &size})
            std::getline(cells, *cell, ',');
        bytes[network + iteration] += std::stoul(size);
        gradients.insert(network + iteration + gradient);
        if (network == "eight layers of 512" && iteration == "2" && bucket == "0")
            last_layer.insert(gradient);
    }
    std::filesystem::remove(path);
    REQUIRE(gradients.size() == rows);
    REQUIRE(bytes.size() == 6);
    for (const char* network : {"mlp", "cnn", "eight layers of 512"})
        REQUIRE(bytes.at(std::string(network) + "1") == bytes.at(std::string(network) + "2"));
    REQUIRE(bytes.at("eight layers of 5122") == 8 * (512 * 512 + 512) * sizeof(float));
    REQUIRE(last_layer == std::set<std::string>{"linear8.bias", "linear8.weight"});
}

}  // namespace ddp::test
