#include "tools/cluster/scaling_report.hpp"

#include <cmath>
#include <iostream>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns "Weak scaling: ..." with what each rank computes.
std::string scaling_title(const ScalingOptions& options) {
    const std::string title = options.is_strong ? "Strong scaling: " : "Weak scaling: ";
    if (options.sleep_s > 0)
        return title +
               (options.is_strong ? "the ranks share a sleep of " : "each rank sleeps for ") +
               format_seconds(options.sleep_s) + " in place of computing";
    return title + (options.is_strong
                        ? "the ranks share " + std::to_string(strong_batch) + " samples"
                        : "each rank has " + std::to_string(weak_batch) + " samples");
}

}  // namespace

std::vector<std::string> scaling_columns() {
    return {"scaling", "compute", "ranks", "nodes", "step_s", "predicted_s", "ideal_s"};
}

void report_scaling(const ScalingOptions& options, const std::vector<ScalingPoint>& points,
                    CsvWriter& file) {
    Table table(scaling_title(options),
                {"ranks", "nodes", "a step", "predicted", "off by", "ideal", "efficiency"});
    for (const ScalingPoint& point : points) {
        const bool is_predicted = !std::isnan(point.predicted_s);
        table.row({std::to_string(point.ranks), std::to_string(point.nodes),
                   format_seconds(point.measured_s),
                   is_predicted ? format_seconds(point.predicted_s) : "-",
                   is_predicted ? format_percent(point.predicted_s / point.measured_s - 1) : "-",
                   format_seconds(point.ideal_s), format_fixed(point.efficiency(), 2)});
        file.row({options.is_strong ? "strong" : "weak", options.sleep_s > 0 ? "sleep" : "network",
                  point.ranks, point.nodes, point.measured_s,
                  is_predicted ? CsvCell(point.predicted_s) : CsvCell(""), point.ideal_s});
    }
    table.note(
        "predicted: by the simulator, from the links above and the compute of one rank. "
        "efficiency: ideal / a step.");
    std::cout << table << "\n";
}

}  // namespace ddp
