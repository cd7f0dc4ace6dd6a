// The exercise cost_line: two numbers from many. Read exercises/06_messages/README.md first.
#include "exercises/06_messages/cost_line.hpp"

#include <cmath>

namespace ddp {

CostModel nearest_line(std::span<const MessageTime> times) {
    // stub: line
    //: The sum of the squares is a function of alpha and beta. Where it is smallest, both
    //: derivatives are 0: two equations for two numbers.
    double weights = 0, mean_bytes = 0, mean_seconds = 0;
    for (const MessageTime& time : times) {
        const double weight = 1 / (time.seconds * time.seconds);
        weights += weight;
        mean_bytes += weight * static_cast<double>(time.bytes);
        mean_seconds += weight * time.seconds;
    }
    mean_bytes /= weights;
    mean_seconds /= weights;
    double rise = 0, run = 0;
    for (const MessageTime& time : times) {
        const double weight = 1 / (time.seconds * time.seconds);
        const double bytes = static_cast<double>(time.bytes) - mean_bytes;
        rise += weight * bytes * (time.seconds - mean_seconds);
        run += weight * bytes * bytes;
    }
    const double beta = rise / run;
    return {mean_seconds - mean_bytes * beta, beta};
    // end stub
}

std::size_t bytes_for_share(const CostModel& message, double share) {
    // stub: share
    //: Which fraction of a message's seconds is bytes * beta?
    const double bytes = share / (1 - share) * message.alpha_s / message.beta_s_per_byte;
    return static_cast<std::size_t>(std::ceil(bytes));
    // end stub
}

}  // namespace ddp
