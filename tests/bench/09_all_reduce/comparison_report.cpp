#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "09_all_reduce/support/algorithms.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/09_all_reduce/comparison.hpp"

namespace ddp {
namespace {

// The unit of a table's bandwidths.
struct RateUnit {
    double bytes_per_second;
    std::string name;
};

// All that was measured on so many ranks, of all kinds of jobs.
class AllMeasurements {
  public:
    AllMeasurements(int ranks, const std::vector<MpiVariant>& kinds)
        : ranks_(ranks), kinds_(kinds) {
        for (const MpiVariant& kind : kinds)
            for (const AllReduceMeasurement& measurement : kind.measurements) {
                remember(algorithms_, called(kind, measurement));
                remember(sizes_, measurement.bytes);
            }
        // MPI and what stands for it come first, as they do in each kind.
        std::stable_partition(algorithms_.begin(), algorithms_.end(), [&](const std::string& name) {
            return name == limit_name || name == "nccl" || name == "gloo" ||
                   std::ranges::count(kinds, name, &MpiVariant::mpi_name) > 0;
        });
    }

    int ranks() const { return ranks_; }
    std::string ranks_text() const { return format_count(ranks_, "rank"); }
    const std::vector<std::string>& algorithms() const { return algorithms_; }
    const std::vector<std::size_t>& sizes() const { return sizes_; }

    // Returns all measurements of this algorithm and size, merged over the jobs. `batches` is empty
    // if there are none.
    AllReduceMeasurement measurement(const std::string& algorithm, std::size_t bytes) const {
        AllReduceMeasurement all{algorithm, bytes, {}, {}, 0};
        for (const MpiVariant& kind : kinds_)
            for (const AllReduceMeasurement& measurement : kind.measurements)
                if (called(kind, measurement) == algorithm && measurement.bytes == bytes) {
                    all.batches.insert(all.batches.end(), measurement.batches.begin(),
                                       measurement.batches.end());
                    all.sums.insert(all.sums.end(), measurement.sums.begin(),
                                    measurement.sums.end());
                    all.wrong += measurement.wrong;
                }
        return all;
    }

    // Bytes a second; NaN where it was not measured.
    double bandwidth(const std::string& algorithm, std::size_t bytes) const {
        const AllReduceMeasurement all = measurement(algorithm, bytes);
        return all.batches.empty() ? NAN : bus_bandwidth(ranks_, bytes, median(all.batches));
    }
    // Returns the unit in which the highest bandwidth is 1 or more.
    RateUnit unit() const {
        double highest = 0;
        for (const std::string& algorithm : algorithms_)
            for (const std::size_t bytes : sizes_)
                highest = std::fmax(highest, bandwidth(algorithm, bytes));
        return highest > 0 && highest < 1e9 ? RateUnit{1e6, "MB/s"} : RateUnit{1e9, "GB/s"};
    }

    // Returns how many times as fast as `other`, "mpi", "gloo" or the limit: the least of all jobs,
    // each compared within itself.
    double against(const std::string& other, const std::string& algorithm,
                   std::size_t bytes) const {
        return least_ratio(algorithm, bytes,
                           [&](const std::string& name) { return name.starts_with(other); });
    }

  private:
    template <class T>
    static void remember(std::vector<T>& all, const T& one) {
        if (std::ranges::find(all, one) == all.end())
            all.push_back(one);
    }
    static std::string called(const MpiVariant& kind, const AllReduceMeasurement& measurement) {
        return measurement.algorithm == "mpi" ? kind.mpi_name : measurement.algorithm;
    }

    template <class Is>
    double least_ratio(const std::string& algorithm, std::size_t bytes, Is is_other) const {
        double least = NAN;
        for (const MpiVariant& kind : kinds_) {
            const AllReduceMeasurement *ours = nullptr, *other = nullptr;
            for (const AllReduceMeasurement& measurement : kind.measurements) {
                if (measurement.bytes == bytes && measurement.algorithm == algorithm)
                    ours = &measurement;
                if (measurement.bytes == bytes && is_other(measurement.algorithm))
                    other = &measurement;
            }
            if (ours != nullptr && other != nullptr)
                least = std::fmin(least, median_ratio(other->batches, ours->batches));
        }
        return least;
    }

    const int ranks_;
    const std::vector<MpiVariant>& kinds_;
    std::vector<std::string> algorithms_;
    std::vector<std::size_t> sizes_;
};

std::string cell(double value, const std::string& unit = "") {
    return std::isnan(value) ? "n/a" : format_fixed(value, 2) + unit;
}

std::string size_text(std::size_t bytes) {
    return format_bytes(static_cast<double>(bytes));
}

// "at least 1.35 (4 KiB), 2.10 in the geometric mean".
std::string summary(const AllMeasurements& all, const std::string& algorithm) {
    double logarithms = 0, least = INFINITY;
    std::size_t least_at = 0;
    for (const std::size_t bytes : all.sizes()) {
        const double ratio = all.against("mpi", algorithm, bytes);
        logarithms += std::log(ratio);
        if (ratio < least) {
            least = ratio;
            least_at = bytes;
        }
    }
    const double mean = std::exp(logarithms / static_cast<double>(all.sizes().size()));
    return "at least " + format_fixed(least, 2) + " (at " + size_text(least_at) + "), " +
           format_fixed(mean, 2) + " in the geometric mean";
}

Table bandwidth_table(const AllMeasurements& all, const std::string& limit,
                      const std::string& algorithm) {
    const RateUnit unit = all.unit();
    std::vector<std::string> header{"algorithm"};
    for (const std::size_t bytes : all.sizes())
        header.push_back(size_text(bytes));
    Table table("All-reduce on " + all.ranks_text() + ": bus bandwidth, " + unit.name, header);
    const auto add = [&](const std::string& name, const auto& value) {
        std::vector<std::string> cells{name};
        for (const std::size_t bytes : all.sizes())
            cells.push_back(value(bytes));
        table.row(cells);
    };
    for (const std::string& name : all.algorithms())
        add(name, [&](std::size_t bytes) {
            return cell(all.bandwidth(name, bytes) / unit.bytes_per_second);
        });
    if (all.ranks() == 1)  // there is nothing to move
        return table;
    const auto has = [&](const std::string& other) {
        return !std::isnan(all.against(other, algorithm, all.sizes()[0]));
    };
    for (const auto& [name, other] : {std::pair{" / MPI", "mpi"}, {" / Gloo", "gloo"}})
        if (has(other))
            add(algorithm + name, [&, library = other](std::size_t bytes) {
                return cell(all.against(library, algorithm, bytes));
            });
    add(algorithm + " / limit",
        [&](std::size_t bytes) { return cell(all.against(limit_name, algorithm, bytes)); });
    if (has("mpi"))
        table.note(algorithm + " / MPI: how many times as fast as the best MPI: " +
                   summary(all, algorithm) + ".");
    table.note(std::string(limit_name) + ": " + limit);
    return table;
}

// Makes the table in the form of nccl-tests.
Table detail_table(const AllMeasurements& all, const std::string& algorithm) {
    const RateUnit unit = all.unit();
    Table table(algorithm + " on " + all.ranks_text() + ", in place",
                {"size (B)", "count", "type", "redop", "time (us)", "p99 (us)",
                 "algbw (" + unit.name + ")", "busbw (" + unit.name + ")", "#wrong"});
    for (const std::size_t bytes : all.sizes()) {
        const AllReduceMeasurement measurement = all.measurement(algorithm, bytes);
        if (measurement.batches.empty())
            continue;
        const double seconds = median(measurement.batches);
        table.row({std::to_string(bytes), std::to_string(bytes / sizeof(float)), "float", "sum",
                   format_fixed(seconds * 1e6, 1),
                   format_fixed(quantile(measurement.sums, 0.99) * 1e6, 1),
                   cell(static_cast<double>(bytes) / seconds / unit.bytes_per_second),
                   cell(all.bandwidth(algorithm, bytes) / unit.bytes_per_second),
                   std::to_string(measurement.wrong)});
    }
    return table;
}

void write_rows(const AllMeasurements& all, CsvWriter& file) {
    for (const std::string& algorithm : all.algorithms())
        for (const std::size_t bytes : all.sizes()) {
            const AllReduceMeasurement measurement = all.measurement(algorithm, bytes);
            if (measurement.batches.empty())
                continue;
            const double seconds = median(measurement.batches);
            const double bandwidth = all.bandwidth(algorithm, bytes) * 1e-9;
            file.row({algorithm, all.ranks(), bytes, seconds * 1e6,
                      quantile(measurement.sums, 0.99) * 1e6,
                      static_cast<double>(bytes) / seconds * 1e-9,
                      std::isnan(bandwidth) ? CsvCell("n/a") : CsvCell(bandwidth),
                      algorithm == limit_name ? CsvCell("n/a") : CsvCell(measurement.wrong)});
        }
}

}  // namespace

std::vector<std::string> comparison_columns() {
    return {"algorithm", "ranks",     "bytes",     "median_us",
            "p99_us",    "algbw_gbs", "busbw_gbs", "wrong"};
}

void report_comparison(int ranks, const std::string& limit, const std::vector<MpiVariant>& kinds,
                       const std::string& algorithm, CsvWriter& file) {
    const AllMeasurements all(ranks, kinds);
    std::cout << bandwidth_table(all, limit, algorithm) << "\n"
              << detail_table(all, algorithm) << std::endl;
    write_rows(all, file);
    for (const std::string& name : all.algorithms())
        for (const std::size_t bytes : all.sizes())
            if (all.measurement(name, bytes).wrong > 0)
                throw std::runtime_error(name + " has given wrong sums of " + size_text(bytes) +
                                         " on " + all.ranks_text());
}

}  // namespace ddp
