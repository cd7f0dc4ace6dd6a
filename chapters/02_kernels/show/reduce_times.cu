#include "02_kernels/show/reduce_times.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t distance_of_ones = 64;

// Writes 1 to every 64th element and 0 to all others, so that the sum is exact in any order.
__global__ void fill_with_ones(std::size_t n, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] = i % distance_of_ones == 0 ? 1.0f : 0.0f;
}

constexpr std::size_t sums_of_reader = 64;

// Reads all elements into 64 sums. Runs in a single thread.
__global__ void read_all(std::size_t n, const float* __restrict__ values, float* sums) {
    float sum[sums_of_reader] = {};
    for (std::size_t i = 0; i + sums_of_reader <= n; i += sums_of_reader)
        for (std::size_t k = 0; k < sums_of_reader; k++)
            sum[k] += values[i + k];
    for (std::size_t k = 0; k < sums_of_reader; k++)
        sums[k] = sum[k];
}

// Returns how many of the elements this version gets: fewer if it would take very long.
std::size_t elements_for(ReduceVersion version, std::size_t elements) {
    const bool is_slow = version == ReduceVersion::atomics ||
                         (kernels_run_on_cpu && version != ReduceVersion::accumulators);
    return is_slow ? std::max<std::size_t>(elements / 64, 1) : elements;
}

// The array, the memory that the versions need, and the measurements as functions to be timed.
class ReduceBench {
  public:
    ReduceBench(const std::vector<BlockReduce>& versions, std::size_t elements)
        : values_(elements), sums_(sums_of_reader) {
        std::size_t scratch = 0;
        for (const BlockReduce& config : versions)
            scratch =
                std::max(scratch, scratch_elements(config, elements_for(config.version, elements)));
        scratch_ = Buffer<float>(scratch);
        if (!kernels_run_on_cpu)
            copy_ = Buffer<float>(elements / 2);
        launch(stream_, grid_for(elements), fill_with_ones, elements, values_.data());
        stream_.synchronize();
    }

    Measurement limit() {
        return timed([this] {
            if (kernels_run_on_cpu)
                launch(stream_, {1, 1}, read_all, values_.size(), values_.data(), sums_.data());
            else
                DDP_CHECK(cudaMemcpyAsync(copy_.data(), values_.data(), copy_.bytes(),
                                          cudaMemcpyDeviceToDevice, stream_));
            stream_.synchronize();
        });
    }

    Measurement version(const BlockReduce& config) {
        const std::size_t n = elements_for(config.version, values_.size());
        return timed([this, config, n] {
            block_reduce<ReduceOp::sum>(config, n, values_.data(), sums_.data(), scratch_.data(),
                                        stream_);
            stream_.synchronize();
        });
    }

    // Throws std::runtime_error if the version's sum is wrong.
    void check(const BlockReduce& config) {
        version(config)();
        const std::size_t n = elements_for(config.version, values_.size());
        const float sum = sums_.to_host_now()[0];
        const std::size_t right = (n + distance_of_ones - 1) / distance_of_ones;
        if (sum != static_cast<float>(right))
            throw std::runtime_error(name_of(config.version) + " in blocks of " +
                                     std::to_string(config.block) + " threads adds up to " +
                                     std::to_string(sum) + " instead of " + std::to_string(right));
    }

  private:
    Stream stream_;
    Buffer<float> values_, sums_, scratch_, copy_;
};

}  // namespace

std::vector<ReduceTime> time_reductions(const std::vector<BlockReduce>& versions,
                                        std::size_t elements, int rounds) {
    ReduceBench bench(versions, elements);
    std::vector<Measurement> all;
    std::vector<ReduceTime> times;
    for (const BlockReduce& config : versions) {
        bench.check(config);
        all.push_back(bench.version(config));
        const std::size_t n = elements_for(config.version, elements);
        times.push_back({name_of(config.version), config.block, n, steps_of(config, n), 0, 0, 0});
    }
    all.push_back(bench.limit());
    times.push_back({"limit", 1, elements, 0, 0, 0, 0});
    const auto seconds = interleave(all, 1, rounds);
    for (std::size_t i = 0; i < all.size(); i++) {
        times[i].seconds = median(seconds[i]);
        times[i].spread = spread(seconds[i]);
        times[i].share = median_ratio(seconds.back(), seconds[i]) *
                         static_cast<double>(times[i].elements) / static_cast<double>(elements);
    }
    return times;
}

void report_work(const std::vector<BlockReduce>& versions, const std::vector<ReduceTime>& times,
                 const std::filesystem::path& csv) {
    Table table(
        "The work of each version on " + format_count(work_elements) + " elements, and its time",
        {"version", "additions in a row", "barriers in a row", "warp additions", "waits",
         "time per element"});
    CsvWriter file(beside(csv, "work"), {"version", "additions_in_a_row", "barriers_in_a_row",
                                         "warp_additions", "waits", "ns_per_element"});
    const auto count = [](std::size_t number) {
        return format_count(static_cast<std::int64_t>(number));
    };
    for (std::size_t i = 0; i < versions.size(); i++) {
        const ReduceWork work = work_of(versions[i], work_elements);
        const double per_element = times[i].seconds / static_cast<double>(times[i].elements);
        table.row({times[i].version, count(work.additions_in_a_row), count(work.barriers_in_a_row),
                   count(work.warp_additions), count(work.waits), format_seconds(per_element)});
        file.row({times[i].version, work.additions_in_a_row, work.barriers_in_a_row,
                  work.warp_additions, work.waits, per_element * 1e9});
    }
    table.note("Waits: how often a thread waits for others, at a barrier or for its warp.");
    std::cout << table;
}

void report(const std::string& title, const std::vector<ReduceTime>& times,
            const std::filesystem::path& csv) {
    Table table(title, {"version", "block", "elements", "additions in a row", "time", "spread",
                        "bandwidth", "of the limit"});
    CsvWriter file(csv, {"version", "block", "elements", "median_us", "gbs", "share_of_limit"});
    for (const ReduceTime& time : times) {
        const double bandwidth = time.bytes_per_second();
        table.row({time.version, std::to_string(time.block),
                   format_count(static_cast<std::int64_t>(time.elements)),
                   time.steps == 0 ? "n/a" : format_count(static_cast<std::int64_t>(time.steps)),
                   format_seconds(time.seconds), format_percent(time.spread),
                   format_bandwidth(bandwidth), format_percent(time.share)});
        file.row({time.version, time.block, time.elements, time.seconds * 1e6, bandwidth * 1e-9,
                  time.share});
    }
    table.note(kernels_run_on_cpu
                   ? "Limit: one thread that reads the array and does nothing else. Threads of a "
                     "block take turns on a CPU, so trees of many threads are slow on it."
                   : "Limit: a copy within the device that moves as many bytes as the array has.");
    std::cout << table;
}

}  // namespace ddp
