// Measures what the machinery under every chapter costs: element-wise kernels against a plain loop,
// a block reduction against the read bandwidth, launches one by one, in batches and as a graph.
#include <iostream>

#include "common/gpu/captured_graph.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp::bench {

__global__ void add_scaled(std::size_t n, float a, const float* __restrict__ x,
                           float* __restrict__ y) {
    for (std::size_t i : grid_range(n))
        y[i] += a * x[i];
}

__global__ void nothing() {}

// Adds up one block share per block: each thread sums its own elements, then the threads add up
// their sums in shared memory.
__global__ void sum_in_blocks(std::size_t n, const float* __restrict__ values, float* sums) {
    constexpr unsigned int block = 256;
    __shared__ float partial[block];
    const GridRange range = grid_range(n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = range.first; i < range.last; i += range.step)
        sum += values[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = block / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = partial[0];
}

}  // namespace ddp::bench

namespace {

using namespace ddp;

// One row of the result: the time that was measured, and the limit that it is compared with.
struct Line {
    std::string what;
    double bytes;  // bytes that must be moved; 0 where only the time counts
    double seconds, spread;
    double limit_s;  // 0: no limit
};

struct Settings {
    int rounds = 31;
    int elements = kernels_run_on_cpu ? 16 << 20 : 1 << 28;  // more than any cache holds
};

// Returns a measurement of `work` on `stream`: seconds by the host's clock.
Measurement on_stream(Stream& stream, std::function<void()> work) {
    return timed([&stream, work = std::move(work)] {
        work();
        stream.synchronize();
    });
}

// Measures the kernel and its limit in turn.
Line against_limit(const std::string& what, double bytes, int rounds, const Measurement& kernel,
                   const Measurement& limit) {
    const std::vector<Measurement> variants{kernel, limit};
    const auto samples = interleave(variants, 3, rounds);
    const double seconds = median(samples[0]);
    return {what, bytes, seconds, spread(samples[0]),
            seconds / median_ratio(samples[0], samples[1])};
}

// Floats that a kernel uses. On a GPU they are in device memory; on a CPU they are in pinned
// memory, which the host may use as well, so the kernel and the plain loop work on the same pages.
struct Floats {
    explicit Floats(std::size_t n) : pinned(kernels_run_on_cpu ? n : 0), device(n - pinned.size()) {
        std::fill_n(pinned.data(), pinned.size(), 1.0f);
    }
    float* data() { return kernels_run_on_cpu ? pinned.data() : device.data(); }

    PinnedBuffer<float> pinned;
    Buffer<float> device;
};

// Returns a measurement of a copy within the device, the most that a GPU's memory can do.
Measurement copy_of(Stream& stream, Buffer<std::byte>& from, Buffer<std::byte>& to) {
    return on_stream(stream, [&] {
        DDP_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                                  stream));
    });
}

// Measures y += a x. The limit on a CPU is the same loop in plain C++.
Line measure_add_scaled(int elements, int rounds) {
    const auto n = static_cast<std::size_t>(elements);
    Stream stream;
    Floats x(n), y(n);
    Buffer<std::byte> from(6 * n), to(6 * n);
    const Measurement kernel = on_stream(stream, [&] {
        launch(stream, grid_for(n), bench::add_scaled, n, 0.5f, x.data(), y.data());
    });
    const Measurement loop = timed([&] {
        const float* __restrict__ from = x.data();
        float* __restrict__ to = y.data();
        for (std::size_t i = 0; i < n; i++)
            to[i] += 0.5f * from[i];
    });
    return against_limit("y += a x, " + format_bytes(4.0 * elements), 12.0 * elements, rounds,
                         kernel, kernels_run_on_cpu ? loop : copy_of(stream, from, to));
}

// Measures a sum. The limit on a CPU is one core that only reads, with 64 sums at a time.
Line measure_reduction(int elements, int rounds) {
    const auto n = static_cast<std::size_t>(elements);
    const unsigned int blocks = kernels_run_on_cpu ? 1 : 1024;
    Stream stream;
    Floats values(n);
    Buffer<float> sums(blocks);
    Buffer<std::byte> from(2 * n), to(2 * n);
    const Measurement kernel = on_stream(stream, [&] {
        launch(stream, {blocks, 256}, bench::sum_in_blocks, n, values.data(), sums.data());
    });
    const Measurement read = timed([&] {
        float sums[64] = {};
        for (std::size_t i = 0; i + 64 <= n; i += 64)
            for (std::size_t j = 0; j < 64; j++)
                sums[j] += values.data()[i + j];
        asm volatile("" : : "r"(sums) : "memory");  // keeps the compiler from dropping the loop
    });
    return against_limit("sum, blocks of 256, " + format_bytes(4.0 * elements), 4.0 * elements,
                         rounds, kernel, kernels_run_on_cpu ? read : copy_of(stream, from, to));
}

// Measures `work`, which makes `batch` launches on the stream.
Line per_launch(const std::string& what, int batch, int rounds, Stream& stream,
                const std::function<void()>& work) {
    const std::vector<Measurement> launches{on_stream(stream, work)};
    const auto samples = interleave(launches, 3, rounds);
    std::vector<double> each;
    for (double seconds : samples[0])
        each.push_back(seconds / batch);
    return {what, 0, median(each), spread(each), 0};
}

Line measure_launches(int batch, int rounds) {
    Stream stream;
    const std::string what =
        batch == 1 ? "launch and synchronise" : "launch, " + std::to_string(batch) + " at a time";
    return per_launch(what, batch, rounds, stream, [&] {
        for (int i = 0; i < batch; i++)
            launch(stream, {1, 1}, bench::nothing);
    });
}

// Measures the same launches captured as one graph, which is launched as a whole.
Line measure_graph(int batch, int rounds) {
    Stream stream;
    CapturedGraph graph(stream, [&] {
        for (int i = 0; i < batch; i++)
            launch(stream, {1, 1}, bench::nothing);
    });
    return per_launch("the same as one graph", batch, rounds, stream,
                      [&] { graph.launch(stream); });
}

int run(int argc, char** argv) {
    Settings options;
    Options parser("bench_runtime",
                   "What launches, element-wise kernels and block reductions cost.");
    parser.add_int("--rounds", options.rounds, {3, 100'000}, "measurements of each, taken in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 5; });
    parser.add_int("--elements", options.elements, {1024, 1 << 28}, "floats in the large arrays");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace", "--seed"},
                  "this bench measures one stream of one device");
    const CommonOptions common = parser.parse(argc, argv);
    const int rounds = options.rounds;
    const std::vector<Line> lines = {measure_add_scaled(options.elements, rounds),
                                     measure_add_scaled(16 << 10, rounds * 20),
                                     measure_reduction(options.elements, rounds),
                                     measure_launches(1, rounds * 20),
                                     measure_launches(500, rounds),
                                     measure_graph(500, rounds)};
    cudaDeviceProp device;
    DDP_CHECK(cudaGetDeviceProperties(&device, 0));
    Table table(std::string("On ") + device.name,
                {"kernel", "time", "spread", "bandwidth", "limit", "of the limit"});
    CsvWriter csv(common.csv, {"what", "bytes", "median_us", "spread", "limit_us"});
    for (const Line& line : lines) {
        const bool has_limit = line.limit_s > 0;
        table.row({line.what, format_seconds(line.seconds), format_percent(line.spread),
                   has_limit ? format_bandwidth(line.bytes / line.seconds) : "n/a",
                   has_limit ? format_bandwidth(line.bytes / line.limit_s) : "n/a",
                   has_limit ? format_percent(line.limit_s / line.seconds) : "n/a"});
        csv.row({line.what, line.bytes, line.seconds * 1e6, line.spread, line.limit_s * 1e6});
    }
    table.note(
        kernels_run_on_cpu
            ? "Limit: the same loop in plain C++, and one core that only reads. Measured in turn."
            : "Limit: a copy within the device that moves as many bytes. Measured in turn.");
    std::cout << table;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
