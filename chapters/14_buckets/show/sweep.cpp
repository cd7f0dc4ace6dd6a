#include "14_buckets/show/reports.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "09_all_reduce/all_reduce.hpp"
#include "10_nodes/make_communicator.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::size_t bytes_sent(const BucketPlan::Bucket& bucket) {
    return bucket.size * bytes_of(bucket.type);
}

BucketPlan plan_of(const GradientSizes& gradients, std::size_t cap) {
    std::vector<std::size_t> order(gradients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return rebuilt_plan(gradients, {cap}, order);
}

std::string text_of_cap(std::size_t cap) {
    if (cap == 0)
        return "each gradient";
    return cap == unlimited_bucket ? "all" : format_bytes(static_cast<double>(cap));
}

// Throws OptionError if the simulated backward, which is as long as the all-reduce of all buckets,
// takes longer than any wait may.
void require_fast(const LinkSpeed& link, double backward_s, double timeout_s) {
    if (timeout_s > 0 && backward_s > timeout_s)
        throw OptionError("--link with " + format_bandwidth(link.bytes_per_second) +
                          " is too slow: to send all gradients takes " +
                          format_seconds(backward_s) + "; use a faster one or a --timeout of " +
                          "more than that.");
}

}  // namespace

// ---- The model

double bucket_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return bytes <= one_shot_bytes ? one_shot_seconds(message, ranks, bytes)
                                   : two_shot_seconds(message, ranks, bytes);
}

std::vector<double> ready_seconds(const BucketPlan& plan, double backward_s) {
    const auto all = static_cast<double>(plan.memory_bytes());
    std::vector<double> ready;
    double computed = 0;
    for (const BucketPlan::Bucket& bucket : plan.buckets) {
        computed += static_cast<double>(bytes_sent(bucket));
        ready.push_back(backward_s * computed / all);
    }
    return ready;
}

double predicted_seconds(const BucketPlan& plan, const CostModel& message, int ranks,
                         double backward_s) {
    const std::vector<double> ready = ready_seconds(plan, backward_s);
    double done = 0;
    for (std::size_t k = 0; k < ready.size(); k++)
        done =
            std::max(done, ready[k]) + bucket_seconds(message, ranks, bytes_sent(plan.buckets[k]));
    return done;
}

// ---- The measurement

double measured_seconds(Peers& peers, ArenaBuffer<float>& memory, const BucketPlan& plan,
                        double backward_s) {
    Stream stream;
    const std::vector<double> ready = ready_seconds(plan, backward_s);
    peers.rank().barrier();
    const auto begin = std::chrono::steady_clock::now();
    const Stopwatch watch;
    float* data = memory.data();
    for (std::size_t k = 0; k < ready.size(); k++) {
        const BucketPlan::Bucket& bucket = plan.buckets[k];
        const std::string name = "bucket " + std::to_string(k);
        std::this_thread::sleep_until(begin + std::chrono::duration<double>(ready[k]));
        if (bytes_sent(bucket) <= one_shot_bytes)
            one_shot_all_reduce(peers, data, data, bucket.size, ReduceOp::average, stream, name);
        else
            two_shot_all_reduce(peers, data, data, bucket.size, ReduceOp::average, stream, name);
        data += bucket.size;
    }
    peers.synchronize(stream);
    return peers.rank().max_over_ranks(watch.seconds());
}

void show_sweep(Rank& rank, const std::vector<SweptModel>& models,
                const std::vector<LinkSpeed>& links, const std::vector<std::size_t>& caps,
                int rounds, const std::filesystem::path& csv) {
    CsvWriter file(rank.rank() == 0 ? csv : "",
                   {"model", "bandwidth", "latency_s", "ranks", "cap", "buckets", "seconds",
                    "predicted_seconds", "backward_s"});
    const int ranks = rank.world_size();
    for (const SweptModel& model : models)
        for (const LinkSpeed& link : links) {
            const CostModel message{link.latency_s, 1 / link.bytes_per_second};
            const std::size_t bytes = plan_of(model.gradients, 0).memory_bytes();
            const double backward_s = two_shot_seconds({0, message.beta_s_per_byte}, ranks, bytes);
            require_fast(link, backward_s, rank.job().timeout_s);
            Peers peers(rank, bytes + (1 << 20), {}, link);
            ArenaBuffer<float> memory = peers.allocate<float>(bytes / sizeof(float));
            memory.copy_from(std::vector<float>(memory.size(), 1));
            Table table(model.name + ", over " + format_bandwidth(link.bytes_per_second) + " and " +
                            format_seconds(link.latency_s) + "; backward takes " +
                            format_seconds(backward_s),
                        {"bucket", "buckets", "predicted", "measured", "difference"});
            for (const std::size_t cap : caps) {
                const BucketPlan plan = plan_of(model.gradients, cap);
                std::vector<double> seconds;
                for (int round = 0; round < rounds; round++)
                    seconds.push_back(measured_seconds(peers, memory, plan, backward_s));
                const double measured = std::ranges::min(seconds);
                const double predicted = predicted_seconds(plan, message, ranks, backward_s);
                table.row({text_of_cap(cap), std::to_string(plan.buckets.size()),
                           format_seconds(predicted), format_seconds(measured),
                           format_percent(measured / predicted - 1)});
                file.row({model.name, link.bytes_per_second, link.latency_s, ranks,
                          cap == unlimited_bucket ? bytes : cap, plan.buckets.size(), measured,
                          predicted, backward_s});
            }
            table.note(
                "The link and backward are simulated. Times run from the beginning of backward "
                "until the last bucket is reduced; measured is the fastest of " +
                std::to_string(rounds) + ".");
            if (rank.rank() == 0)
                std::cout << table << "\n";
        }
}

// ---- Bits

std::string hash_of_reduced(Rank& rank, const GradientSizes& gradients, std::size_t cap) {
    const BucketPlan plan = plan_of(gradients, cap);
    const std::size_t size = plan.memory_bytes() / sizeof(float);
    const auto communicator = make_communicator("native", rank, plan.memory_bytes() + (1 << 20));
    ArenaBuffer<float> memory = communicator->allocate<float>(size);
    std::vector<std::size_t> begins(plan.buckets.size());
    for (std::size_t k = 1; k < begins.size(); k++)
        begins[k] = begins[k - 1] + plan.buckets[k - 1].size;
    const auto begin_of = [&](std::size_t i) {
        return begins[plan.places[i].bucket] + plan.places[i].offset;
    };
    // Values whose sums must be rounded; a gradient has the same values wherever it is placed.
    std::vector<float> values(size);
    for (std::size_t i = 0; i < gradients.size(); i++)
        for (std::size_t k = 0; k < gradients[i].elements; k++)
            values[begin_of(i) + k] = std::sin(static_cast<float>(k * 7 + i * 31 + 1)) /
                                      static_cast<float>(rank.rank() + 3);
    memory.copy_from(values);
    Stream stream;
    rank.barrier();
    for (std::size_t k = 0; k < begins.size(); k++)
        communicator->all_reduce(memory.data() + begins[k], memory.data() + begins[k],
                                 plan.buckets[k].size, ReduceOp::average, stream,
                                 "bucket " + std::to_string(k));
    communicator->synchronize(stream);
    values = memory.to_host_now();
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words
    for (std::size_t i = 0; i < gradients.size(); i++)
        for (std::size_t k = 0; k < gradients[i].elements; k++)
            hash = (hash ^ std::bit_cast<std::uint32_t>(values[begin_of(i) + k])) * 0x100000001b3;
    for (const std::uint64_t theirs : rank.all_gather(hash))
        if (theirs != hash)
            throw std::runtime_error("the ranks have different bits");
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(16) << hash;
    return text.str();
}

void show_bits(Rank& rank, const SweptModel& model, const std::vector<std::size_t>& caps) {
    Table table("The same gradients of " + model.name + ", reduced in other buckets",
                {"bucket", "bits on rank 0", "on the others"});
    for (const std::size_t cap : caps)
        table.row({text_of_cap(cap), hash_of_reduced(rank, model.gradients, cap), "the same"});
    table.note(
        "A gradient at another place in its bucket may be in another chunk, and each chunk has "
        "its own order of summation. With two ranks there is only one order.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

}  // namespace ddp
