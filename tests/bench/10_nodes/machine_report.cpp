#include "tests/bench/10_nodes/machine_report.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "09_all_reduce/show/algorithms.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/10_nodes/link_limit.hpp"

namespace ddp {
namespace {

// Returns values without repetition, in the order in which they come.
template <class Value, class Get>
std::vector<Value> each_once(const std::vector<AllReduceMeasurement>& measurements, Get get) {
    std::vector<Value> values;
    for (const AllReduceMeasurement& measurement : measurements)
        if (std::ranges::find(values, get(measurement)) == values.end())
            values.push_back(get(measurement));
    return values;
}

}  // namespace

std::vector<std::string> machine_columns() {
    return {"table",
            "algorithm",
            "ranks",
            "bytes",
            "seconds",
            "expected_seconds",
            "bus_bytes_per_second"};
}

void report_machine(int ranks, const std::vector<AllReduceMeasurement>& measurements,
                    CsvWriter& file) {
    const auto sizes =
        each_once<std::size_t>(measurements, [](const AllReduceMeasurement& s) { return s.bytes; });
    const auto algorithms = each_once<std::string>(
        measurements, [](const AllReduceMeasurement& s) { return s.algorithm; });
    std::map<std::pair<std::string, std::size_t>, double> seconds;
    for (const AllReduceMeasurement& measurement : measurements)
        seconds[{measurement.algorithm, measurement.bytes}] = median(measurement.batches);
    std::vector<std::string> header{"algorithm"};
    for (const std::size_t bytes : sizes)
        header.push_back(format_bytes(static_cast<double>(bytes)));
    const std::string title =
        "An all-reduce on " + std::to_string(ranks) + " ranks of several nodes: ";
    Table times(title + "time", header), bandwidths(title + "bus bandwidth", header);
    const bool has_limit = std::ranges::count(algorithms, limit_name) != 0;
    for (const std::string& algorithm : algorithms) {
        std::vector<std::string> time_cells{algorithm}, bandwidth_cells{algorithm};
        for (const std::size_t bytes : sizes) {
            const auto found = seconds.find({algorithm, bytes});
            const double acknowledged = found == seconds.end() ? NAN : found->second;
            const double bandwidth = bus_bandwidth(ranks, bytes, acknowledged);
            time_cells.push_back(format_seconds(acknowledged));
            bandwidth_cells.push_back(format_bandwidth(bandwidth));
            if (found != seconds.end())
                file.row({"machine", algorithm, ranks, bytes, acknowledged,
                          has_limit ? CsvCell(seconds[{limit_name, bytes}]) : CsvCell(""),
                          bandwidth});
        }
        times.row(time_cells);
        bandwidths.row(bandwidth_cells);
    }
    bandwidths.note(std::string(limit_name) + ": " + link_limit_text());
    std::cout << times << "\n" << bandwidths << "\n";
}

}  // namespace ddp
