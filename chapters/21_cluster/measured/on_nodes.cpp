#include "21_cluster/measured/comparison.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using namespace simulator;

// One row of measurements. Links at 100 and 400 Mbit/s were made by Linux (tbf) between network
// namespaces; the all-reduces were programs of their own over TCP, and a rank computed by sleeping.
struct OnNodes {
    int mbit, nodes, ranks_per_node;
    Algorithm algorithm;
    double all_reduce_ms[4];  // of 256 KiB, 1, 4 and 16 MiB; 0: not measured
    double step_ms[4];        // as `steps` below
};

constexpr OnNodes on_nodes[] = {
    {100, 2, 1, Algorithm::flat, {20.80, 84.37, 339.14, 0}, {477, 411, 485, 528}},
    {100, 2, 2, Algorithm::flat, {31.17, 126.42, 508.39, 0}, {636, 413, 525, 582}},
    {100, 2, 2, Algorithm::two_level, {20.88, 84.81, 342.94, 0}, {478, 412, 486, 580}},
    {100, 4, 1, Algorithm::flat, {31.20, 126.68, 511.04, 0}, {650, 419, 546, 587}},
    {100, 4, 2, Algorithm::flat, {36.47, 149.14, 598.38, 0}, {730, 419, 548, 628}},
    {100, 4, 2, Algorithm::two_level, {32.34, 127.15, 514.86, 0}, {657, 417, 532, 633}},
    {400, 2, 1, Algorithm::flat, {5.22, 21.09, 87.57, 342.65}, {494, 412, 488, 530}},
    {400, 2, 2, Algorithm::flat, {7.71, 31.67, 127.10, 509.50}, {640, 416, 528, 585}},
    {400, 2, 2, Algorithm::two_level, {5.36, 21.89, 89.77, 350.43}, {508, 442, 491, 582}},
    {400, 4, 1, Algorithm::flat, {7.74, 34.51, 132.69, 527.76}, {662, 418, 535, 587}},
    {400, 4, 2, Algorithm::flat, {9.43, 37.09, 148.33, 594.21}, {736, 422, 570, 645}},
    {400, 4, 2, Algorithm::two_level, {8.94, 35.91, 142.25, 560.25}, {794, 453, 553, 632}},
};

// Steps of 100 ms forward and 300 ms backward, in eight equal buckets.
struct StepOnNodes {
    double bucket_bytes_at_100_mbit;  // four times as many at 400 Mbit/s
    bool overlap;
    double jitter;
};

constexpr StepOnNodes steps[] = {
    {512 << 10, true, 0}, {128 << 10, true, 0}, {128 << 10, false, 0}, {128 << 10, true, 0.2}};

// This book's own ring between such nodes.
struct OwnRing {
    int mbit, nodes, ranks_per_node;
    double mebibytes, ms;
};

constexpr OwnRing own_ring[] = {{100, 2, 1, 1, 86.9},  {100, 2, 1, 4, 343},   {100, 2, 2, 1, 127.6},
                                {100, 2, 2, 4, 512},   {100, 4, 1, 1, 142.6}, {100, 4, 1, 4, 532},
                                {100, 4, 2, 1, 149.3}, {100, 4, 2, 4, 608},   {400, 4, 2, 4, 172}};

constexpr const char* on_namespaces = "4 namespace nodes, November 2026";

// The links as a ping-pong between two otherwise idle ranks has measured them.
Cluster namespace_nodes(int mbit, int nodes, int ranks_per_node) {
    const bool slow = mbit == 100;
    return {.nodes = nodes,
            .ranks_per_node = ranks_per_node,
            .inside = slow ? straight_link(12.2e-6, 2931e6) : straight_link(17.1e-6, 2454e6),
            .between = slow ? straight_link(12.2e-6, 12.41e6) : straight_link(18.4e-6, 49.49e6)};
}

// Returns the words for the nodes and the order of a row.
std::string shape_of(const OnNodes& row) {
    return std::to_string(row.mbit) + " Mbit/s, " + std::to_string(row.nodes) + " x " +
           std::to_string(row.ranks_per_node) +
           (row.algorithm == Algorithm::flat ? ", flat ring, " : ", two levels, ");
}

void add_all_reduces_of(const OnNodes& row, const Seconds& seconds,
                        std::vector<Comparison>& result) {
    double bytes = 256 << 10;
    for (const double ms : row.all_reduce_ms) {
        if (ms > 0)
            result.push_back({large_all_reduce, shape_of(row) + format_bytes(bytes), ms,
                              seconds(bytes) * 1e3, "ms", on_namespaces});
        bytes *= 4;
    }
}

void add_steps_of(const OnNodes& row, const Seconds& seconds, std::vector<Comparison>& result) {
    for (std::size_t i = 0; i < std::size(steps); i++) {
        const StepOnNodes& kind = steps[i];
        const double bucket_bytes = kind.bucket_bytes_at_100_mbit * row.mbit / 100;
        const Step step = equal_buckets(0.1, 0.3, 8, 8 * bucket_bytes);
        const double predicted_s = jittery_step_s(step, seconds, kind.overlap,
                                                  row.nodes * row.ranks_per_node, kind.jitter, 200);
        result.push_back({kind.jitter > 0 ? jittery_step : plain_step,
                          shape_of(row) + "8 x " + format_bytes(bucket_bytes) +
                              (kind.overlap ? "" : ", no overlap"),
                          row.step_ms[i], predicted_s * 1e3, "ms", on_namespaces});
    }
}

Comparison own_ring_compared(const OwnRing& row) {
    const Cluster cluster = namespace_nodes(row.mbit, row.nodes, row.ranks_per_node);
    const double bytes = row.mebibytes * (1 << 20);
    return {own_all_reduce,
            std::to_string(row.mbit) + " Mbit/s, " + std::to_string(row.nodes) + " x " +
                std::to_string(row.ranks_per_node) + ", " + format_bytes(bytes),
            row.ms,
            all_reduce_s(Algorithm::flat, cluster, bytes) * 1e3,
            "ms",
            on_namespaces};
}

}  // namespace

std::vector<Comparison> comparisons_on_nodes() {
    std::vector<Comparison> result;
    for (const OnNodes& row : on_nodes) {
        const Cluster cluster = namespace_nodes(row.mbit, row.nodes, row.ranks_per_node);
        const Seconds seconds = [&](double bytes) {
            return all_reduce_s(row.algorithm, cluster, bytes);
        };
        add_all_reduces_of(row, seconds, result);
        add_steps_of(row, seconds, result);
    }
    for (const OwnRing& row : own_ring)
        result.push_back(own_ring_compared(row));
    return result;
}

}  // namespace ddp
