#include "21_cluster/measured/links_file.hpp"

#include "21_cluster/measured/csv_line.hpp"

namespace ddp {
namespace {

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

}  // namespace ddp
