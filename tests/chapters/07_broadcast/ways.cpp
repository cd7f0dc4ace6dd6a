#include "tests/chapters/07_broadcast/ways.hpp"

namespace ddp::test {

const std::vector<Way>& all_ways() {
    static const std::vector<Way> ways{
        {"linear broadcast", linear_broadcast},
        {"all-at-once broadcast", all_at_once_broadcast},
        {"tree broadcast", tree_broadcast},
        {"chain broadcast (3)",
         [](Peers& peers, const AnyArray& array, int root, Stream& stream,
            const std::string& name) { chain_broadcast(peers, array, root, stream, name, 3); }},
    };
    return ways;
}

}  // namespace ddp::test
