#include "10_nodes/communicator/node_order.hpp"

#include <charconv>

#include "05_ranks/environment.hpp"

namespace ddp {
namespace {

// Returns a number from 1 to max_ranks, or nothing.
std::optional<int> parse_count(const std::string& text) {
    int count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > max_ranks)
        return std::nullopt;
    return count;
}

NodeShape parse_shape(const std::string& text) {
    const std::size_t x = std::min(text.find('x'), text.size());
    const std::optional<int> nodes = parse_count(text.substr(0, x));
    const std::optional<int> ranks = parse_count(text.substr(std::min(x + 1, text.size())));
    if (!nodes || !ranks || *nodes * *ranks > max_ranks)
        throw OptionError("--shape needs NODESxRANKS such as 4x2, and at most " +
                          std::to_string(max_ranks) + " ranks in all, not '" + text + "'.");
    return {*nodes, *ranks};
}

}  // namespace

void NodeShape::require(const Job& job) const {
    if (job.has_several_nodes())
        throw OptionError(
            "--shape simulates nodes on one machine, and these ranks are on several: leave it "
            "out.");
    if (ranks() != job.world_size())
        throw OptionError("--shape " + text() + " has " + std::to_string(ranks()) +
                          " ranks, and there are " + std::to_string(job.world_size()) +
                          ": take another shape, or as many ranks.");
}

void AllReduceOrder::add_to(Options& parser) {
    parser.add_taken("--shape", "HxL", "simulate H nodes of L ranks each, on this machine",
                     [this](const std::string& text, CommonOptions& common) {
                         shape = parse_shape(text);
                         common.default_ranks = shape->ranks();
                     });
    parser.add_int("--levels", levels, {1, 2},
                   "of an all-reduce between nodes: one ring, or within each node first");
}

}  // namespace ddp
