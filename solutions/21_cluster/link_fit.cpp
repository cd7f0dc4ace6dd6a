// The exercise link_fit: a link from measured times. Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/link_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ddp {

CostModel robust_line(std::span<const MessageTime> times) {
    // stub: robust
    //: No sum over all times: one that is wrong by a factor of a thousand would decide it alone.
    // The least median of squares, of relative errors: Rousseeuw, "Least Median of Squares
    // Regression", Journal of the American Statistical Association 79 (1984).
    CostModel best;
    double least = std::numeric_limits<double>::infinity();
    for (const MessageTime& one : times)
        for (const MessageTime& other : times) {
            if (one.bytes >= other.bytes)
                continue;
            const double beta =
                (other.seconds - one.seconds) / static_cast<double>(other.bytes - one.bytes);
            const CostModel line{one.seconds - beta * static_cast<double>(one.bytes), beta};
            std::vector<double> errors;
            for (const MessageTime& time : times)
                errors.push_back(std::abs(line.seconds(time.bytes) / time.seconds - 1));
            const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
            std::ranges::nth_element(errors, middle);
            if (*middle < least) {
                least = *middle;
                best = line;
            }
        }
    return best;
    // end stub
}

double wire_bandwidth(int nodes, int ranks_per_node, int levels, double bus_bandwidth) {
    // stub: wire
    //: How many bytes leave a node? How many does the formula of the bus bandwidth count?
    const double ranks = nodes * ranks_per_node, ring = levels == 1 ? ranks : nodes;
    return bus_bandwidth * ((ring - 1) / ring) / ((ranks - 1) / ranks);
    // end stub
}

CostModel link_of(int nodes, int ranks_per_node, std::span<const PrintedLine> lines) {
    // stub: link
    //: The seconds of an all-reduce are on a line, too. How many messages follow one another in it?
    const double ranks = nodes * ranks_per_node, steps = 2 * (nodes - 1);
    std::vector<MessageTime> times;
    for (const PrintedLine& line : lines)
        times.push_back({line.bytes, 2 * (ranks - 1) / ranks * static_cast<double>(line.bytes) /
                                         line.bus_bandwidth});
    const CostModel all_reduce = robust_line(times);
    return {all_reduce.alpha_s / steps, all_reduce.beta_s_per_byte / steps * ranks};
    // end stub
}

}  // namespace ddp
