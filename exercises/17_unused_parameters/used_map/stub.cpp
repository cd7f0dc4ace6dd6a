// The exercise used_map: which bucket hangs, and how to avoid it. Read
// exercises/17_unused_parameters/README.md first.
#include "exercises/17_unused_parameters/used_map.hpp"

namespace ddp {

std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters) {
    // Inputs stand before the nodes that use them.
    throw NotImplemented("search");
}

Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached) {
    // Which condition must a bucket meet, so that all ranks get past it?
    throw NotImplemented("first_hang");
}

Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used) {
    // First the map: has any rank used the parameter? Then the mean in the bucket.
    throw NotImplemented("settle");
}

}  // namespace ddp
