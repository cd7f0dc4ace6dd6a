// The exercise used_map: which bucket hangs, and how to avoid it. Read
// exercises/17_unused_parameters/README.md first.
#include "exercises/17_unused_parameters/used_map.hpp"

namespace ddp {

std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters) {
    // stub: search
    //: Inputs stand before the nodes that use them.
    std::vector<bool> is_reached(graph.size(), false);
    std::vector<bool> found(static_cast<std::size_t>(parameters), false);
    for (const int output : outputs)
        is_reached[static_cast<std::size_t>(output)] = true;
    for (std::size_t i = graph.size(); i-- > 0;) {
        const GraphNode& node = graph[i];
        if (!is_reached[i])
            continue;
        if (node.parameter >= 0)
            found[static_cast<std::size_t>(node.parameter)] = true;
        if (node.is_detached)
            continue;
        for (const int input : node.inputs)
            is_reached[static_cast<std::size_t>(input)] = true;
    }
    return found;
    // end stub
}

Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached) {
    // stub: first_hang
    //: Which condition must a bucket meet, so that all ranks get past it?
    for (std::size_t b = 0; b < buckets.size(); b++) {
        Hang hang{static_cast<int>(b)};
        for (std::size_t rank = 0; rank < reached.size(); rank++) {
            bool is_full = true;
            for (const int parameter : buckets[b])
                is_full = is_full && reached[rank][static_cast<std::size_t>(parameter)];
            if (!is_full)
                hang.absent.push_back(static_cast<int>(rank));
        }
        if (!hang.absent.empty())
            return hang;
    }
    return {};
    // end stub
}

Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used) {
    // stub: settle
    //: First the map: has any rank used the parameter? Then the mean in the bucket.
    Gradients after = gradients;
    const std::size_t ranks = gradients.size();
    for (std::size_t p = 0; p < gradients[0].size(); p++) {
        int users = 0;
        double sum = 0;
        for (std::size_t rank = 0; rank < ranks; rank++) {
            users += used[rank][p];
            sum += gradients[rank][p].value_or(0);
        }
        if (users == 0)
            continue;
        for (std::size_t rank = 0; rank < ranks; rank++)
            after[rank][p] = sum / static_cast<double>(ranks);
    }
    return after;
    // end stub
}

}  // namespace ddp
