// The exercise used_map: who hangs, and what is done about it. Read
// exercises/15_unused_parameters/README.md first.
#include "exercises/15_unused_parameters/used_map.hpp"

namespace ddp {

std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters) {
    // Inputs stand before those who use them.
    throw NotImplemented("search");
}

Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached) {
    // What must be true of a bucket for all ranks to get over it?
    throw NotImplemented("first_hang");
}

Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used) {
    // First the map: has any rank used it? Then what is in the bucket.
    throw NotImplemented("settle");
}

}  // namespace ddp
