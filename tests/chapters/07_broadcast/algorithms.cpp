#include "tests/chapters/07_broadcast/algorithms.hpp"

namespace ddp::test {

const std::vector<Algorithm>& all_algorithms() {
    static const std::vector<Algorithm> algorithms{
        {"linear broadcast", linear_broadcast},
        {"all-at-once broadcast", all_at_once_broadcast},
        {"tree broadcast", tree_broadcast},
        {"chain broadcast (3)", [](Peers& peers, const Call& call,
                                   Stream& stream) { chain_broadcast(peers, call, stream, 3); }},
    };
    return algorithms;
}

}  // namespace ddp::test
