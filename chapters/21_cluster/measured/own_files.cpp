#include "21_cluster/measured/own_files.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// A line of such a file. An error names the file and the line.
struct CsvLine {
    const std::filesystem::path& path;
    const Csv& csv;
    std::size_t row;

    // Throws std::runtime_error: `reason` is what follows "line 3: ".
    [[noreturn]] void refuse(const std::string& reason) const {
        throw std::runtime_error("'" + path.string() + "', line " + std::to_string(row + 2) + ": " +
                                 reason);
    }
    const std::string& text(std::string_view column) const try {
        return csv.text(row, column);
    } catch (const std::runtime_error& error) {
        refuse(error.what());
    }
    // Returns a number, 0 or more; throws as refuse does if the cell holds something else.
    double number(std::string_view column) const try {
        const double value = csv.number(row, column);
        return value >= 0 && value < 1e18
                   ? value
                   : throw std::runtime_error("'" + std::string(column) +
                                              "' must be a number from 0 to 1e18.");
    } catch (const std::runtime_error& error) {
        refuse(error.what());
    }
};

using Points = std::vector<simulator::Link::Point>;

// The latency is what the line through the two smallest messages leaves for a message of no bytes.
simulator::Link link_of(Points points) {
    const auto [bytes, seconds] = points[0];
    const double slope = (points[1].seconds - seconds) / (points[1].bytes - bytes);
    const double latency_s = std::clamp(seconds - slope * bytes, 0.0, seconds);
    for (simulator::Link::Point& point : points)
        point.seconds = std::max(0.0, point.seconds - latency_s);
    if (bytes > 0)
        points.insert(points.begin(), {0, 0});
    return {latency_s, points};
}

// A rank in the recorded step, in order of time.
struct RankRecord {
    double begin_s = 1e18, end_s = 0, forward_end_s = 1e18, optimizer_s = 0;
    std::vector<double> backward_ends_s;
    struct AllReduce {
        double bytes, begin_s, end_s;
    };
    std::vector<AllReduce> all_reduces;
};

// Returns the bytes in "bucket 0, 4.04 MiB".
double bytes_of(const CsvLine& line) {
    const std::map<std::string, double> units = {
        {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    const std::string& name = line.text("name");
    std::istringstream words(name.substr(name.find(',') + 1));
    double count = 0;
    std::string unit;
    if (!(words >> count >> unit) || !units.contains(unit))
        line.refuse("'" + name + "' should be a bucket and its size, as 'bucket 0, 4.04 MiB'.");
    return count * units.at(unit);
}

void add_line(const CsvLine& line, RankRecord& rank) {
    const std::string& name = line.text("name");
    const double begin_s = line.number("begin_ms") / 1e3, end_s = line.number("end_ms") / 1e3;
    if (line.text("stream") != "compute") {
        rank.all_reduces.push_back({bytes_of(line), begin_s, end_s});
        return;
    }
    rank.begin_s = std::min(rank.begin_s, begin_s);
    rank.end_s = std::max(rank.end_s, end_s);
    if (name.starts_with("backward")) {
        rank.forward_end_s = std::min(rank.forward_end_s, begin_s);
        rank.backward_ends_s.push_back(end_s);
    } else if (name == "optimizer") {
        rank.optimizer_s += end_s - begin_s;
    }
}

// Returns since when the rank has bucket `i`: the end of the last backward span before its
// all-reduce. With the last bucket, backward has ended.
double ready_s(const RankRecord& rank, std::size_t i) {
    double ready = rank.forward_end_s;
    for (const double end_s : rank.backward_ends_s)
        if (i + 1 == rank.all_reduces.size() || end_s <= rank.all_reduces[i].begin_s)
            ready = std::max(ready, end_s);
    return ready;
}

}  // namespace

MeasuredLinks read_links(const std::filesystem::path& path) {
    const Csv csv = read_csv(path);
    Points inside, between;
    for (CsvLine line{path, csv, 0}; line.row < csv.rows.size(); line.row++) {
        const std::string& name = line.text("link");
        if (name != "inside" && name != "between")
            line.refuse("the link is '" + name + "', but must be 'inside' or 'between'.");
        Points& points = name == "inside" ? inside : between;
        points.push_back({line.number("bytes"), line.number("seconds")});
        if (points.size() > 1 && points.back().bytes <= points[points.size() - 2].bytes)
            line.refuse("the bytes of a link must grow from line to line.");
    }
    for (const Points* points : {&inside, &between})
        if (points->size() == 1 || inside.size() + between.size() == 0)
            throw std::runtime_error("'" + path.string() +
                                     "' has too few lines: a link needs two sizes or more.");
    return {link_of(inside.empty() ? between : inside),
            link_of(between.empty() ? inside : between)};
}

simulator::Link parse_link(const std::string& option, const std::string& text) {
    const std::size_t comma = text.find(',');
    const auto bandwidth = parse_bandwidth(text.substr(0, comma));
    const auto latency = parse_seconds(comma == text.npos ? "" : text.substr(comma + 1));
    if (!bandwidth || *bandwidth < 1 || !latency)
        throw OptionError(option + " must be BANDWIDTH,LATENCY such as 48GB/s,14us, but is '" +
                          text + "'.");
    return simulator::straight_link(*latency, *bandwidth);
}

RecordedStep read_step(const std::filesystem::path& path) {
    const Csv csv = read_csv(path);
    std::map<std::string, RankRecord> ranks;
    for (CsvLine line{path, csv, 0}; line.row < csv.rows.size(); line.row++)
        if (line.text("overlap") == "on")
            add_line(line, ranks[line.text("rank")]);
    const std::size_t buckets = ranks.empty() ? 0 : ranks.begin()->second.all_reduces.size();
    for (const auto& [name, rank] : ranks)
        if (buckets == 0 || rank.all_reduces.size() != buckets || rank.backward_ends_s.empty())
            throw std::runtime_error("'" + path.string() + "': rank " + name +
                                     " lacks its backward or some of its buckets.");
    if (ranks.empty())
        throw std::runtime_error("'" + path.string() + "' holds no step with overlap.");
    RecordedStep result;
    result.ranks = static_cast<int>(ranks.size());
    result.step.buckets.resize(buckets);
    const double share = 1.0 / static_cast<double>(ranks.size());
    for (const auto& [name, rank] : ranks) {
        result.measured_s += share * (rank.end_s - rank.begin_s);
        result.step.forward_s += share * (rank.forward_end_s - rank.begin_s);
        result.step.optimizer_s += share * rank.optimizer_s;
    }
    for (std::size_t i = 0; i < buckets; i++) {
        double all_began_s = 0, all_ended_s = 0;
        for (const auto& [name, rank] : ranks) {
            const double before_s = i == 0 ? rank.forward_end_s : ready_s(rank, i - 1);
            result.step.buckets[i].backward_s += share * (ready_s(rank, i) - before_s);
            result.step.buckets[i].bytes = rank.all_reduces[i].bytes;
            all_began_s = std::max(all_began_s, rank.all_reduces[i].begin_s);
            all_ended_s = std::max(all_ended_s, rank.all_reduces[i].end_s);
        }
        result.all_reduce_s.push_back(all_ended_s - all_began_s);
    }
    return result;
}

}  // namespace ddp
