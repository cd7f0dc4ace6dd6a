#include "tests/chapters/05_broadcast/ways.hpp"

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

CommonOptions thread_options(int ranks, double timeout_s) {
    CommonOptions options;
    options.ranks = ranks;
    options.timeout_s = timeout_s;
    return options;
}

std::string failure_of(World& world, const std::function<void(Rank&)>& work) {
    try {
        world.run(work);
        return "";
    } catch (const RunFailed& failure) {
        return failure.what();
    }
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace ddp::test
